#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "core/file.h"

namespace megalith::observe {

// Appends records to a file from a thread of its own, so that a slow disk never holds up a training step. When the disk
// falls behind by `capacity` records, new ones are dropped and counted; a disk that refuses loses them the same way.
// The first loss is said in the log.
class AsyncFile {
 public:
  // What can follow a write that failed half way: in a file of lines the next line, in a binary file nothing.
  enum class Content { lines, binary };
  static constexpr size_t kCapacity = 65536;

  explicit AsyncFile(const std::filesystem::path& path, Content content = Content::lines, size_t capacity = kCapacity);
  ~AsyncFile();
  AsyncFile(const AsyncFile&) = delete;
  AsyncFile& operator=(const AsyncFile&) = delete;

  // False if the record was dropped. Any thread.
  bool push(std::string record);
  // Waits until everything pushed so far is with the operating system (or lost).
  void flush();

  int64_t lost() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  void run();
  void write(const std::deque<std::string>& records);
  void note_loss(int64_t records, const std::string& reason);

  std::filesystem::path path_;
  File file_;
  Content content_;
  size_t capacity_;
  bool cut_ = false;  // the last write may have ended inside a record; used by the writer only

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<std::string> queue_;
  bool busy_ = false;
  bool stop_ = false;
  int64_t lost_ = 0;

  std::thread writer_;  // last: it uses all of the above
};

// True if the file has content that does not end a line: a process died while writing.
bool ends_in_torn_line(const std::filesystem::path& path);

}  // namespace megalith::observe
