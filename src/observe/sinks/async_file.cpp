#include "observe/sinks/async_file.h"

#include <fmt/format.h>

#include "core/error.h"
#include "observe/sinks/log_files.h"

namespace megalith::observe {

AsyncFile::AsyncFile(const std::filesystem::path& path, Content content, size_t capacity)
    : path_(path), file_(File::open_for_appending(path)), content_(content), capacity_(capacity), writer_([this] {
        run();
      }) {}

AsyncFile::~AsyncFile() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  writer_.join();
}

bool AsyncFile::push(std::string record) {
  bool first_loss = false;
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() < capacity_) {
      queue_.push_back(std::move(record));
      wake_.notify_one();
      return true;
    }
    first_loss = lost_++ == 0;
  }
  if (first_loss) log_warning(fmt::format("{} cannot be written fast enough: records are dropped", path_.string()));
  return false;
}

void AsyncFile::flush() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return queue_.empty() && !busy_; });
}

int64_t AsyncFile::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void AsyncFile::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::deque<std::string> batch;
    batch.swap(queue_);
    busy_ = true;
    lock.unlock();
    write(batch);
    batch.clear();  // while others may push
    lock.lock();
    busy_ = false;
    if (queue_.empty()) idle_.notify_all();
  }
}

void AsyncFile::write(const std::deque<std::string>& records) {
  if (cut_ && content_ == Content::binary) {
    note_loss(static_cast<int64_t>(records.size()), "an earlier write failed");
    return;
  }
  std::string bytes = cut_ ? "\n" : "";
  for (const std::string& record : records) bytes += record;
  try {
    file_.write(bytes);
    cut_ = false;
  } catch (const Error& error) {
    cut_ = true;
    note_loss(static_cast<int64_t>(records.size()), error.what());
  }
}

void AsyncFile::note_loss(int64_t records, const std::string& reason) {
  bool first_loss = false;
  {
    const std::lock_guard lock(mutex_);
    first_loss = lost_ == 0;
    lost_ += records;
  }
  if (first_loss) log_warning(fmt::format("{}: records are lost: {}", path_.string(), reason));
}

bool ends_in_torn_line(const std::filesystem::path& path) {
  std::error_code status;
  if (!std::filesystem::exists(path, status)) return false;
  const File file = File::open_for_reading(path);
  const int64_t size = file.size();
  if (size == 0) return false;
  std::byte last{};
  file.read_at(size - 1, {&last, 1});
  return last != std::byte{'\n'};
}

}  // namespace megalith::observe
