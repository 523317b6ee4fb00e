#include "data/order/index_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <iostream>
#include <utility>

#include "core/error.h"
#include "core/file.h"

namespace megalith::data {

namespace {
constexpr uint64_t kGptKind = 1;
constexpr uint64_t kBlendKind = 2;
constexpr uint64_t kStampKind = 3;
// Part of every key: raised when the same inputs give another order.
constexpr uint64_t kOrderVersion = 1;

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

uint64_t as_word(int64_t value) {
  return static_cast<uint64_t>(value);
}
}  // namespace

struct IndexCache::State {
  std::atomic<int64_t> built{0};
  std::atomic<int64_t> reused{0};
  std::atomic<int64_t> bytes_written{0};
  std::atomic<bool> warned_of_writing{false};
};

IndexKey GptIndexKey::hash() const {
  const std::vector<uint64_t> words{
      kOrderVersion,    content.low, content.high, as_word(range.begin), as_word(range.end), as_word(sequence_length),
      as_word(horizon), seed};
  return hash128(bytes_of(words));
}

IndexCache::IndexCache(std::filesystem::path directory, Warn warn)
    : directory_(std::move(directory)), warn_(std::move(warn)), state_(std::make_unique<State>()) {
  if (!warn_) warn_ = [](const std::string& text) { std::cerr << "warning: " + text + "\n" << std::flush; };
  std::error_code status;
  std::filesystem::create_directories(directory_, status);
  if (!std::filesystem::is_directory(directory_)) {
    user_error("model.data.index_mapping_dir={}: cannot create that directory", directory_.string());
  }
}
IndexCache::~IndexCache() = default;

IndexCache::Counts IndexCache::counts() const {
  return {.built = state_->built, .reused = state_->reused, .bytes_written = state_->bytes_written};
}

std::filesystem::path IndexCache::path_of(const char* kind, const IndexKey& key) const {
  return directory_ / fmt::format("{}-{}.index", kind, key.hex());
}

std::shared_ptr<const IndexFile> IndexCache::open(const std::filesystem::path& path, uint64_t kind,
                                                  const IndexKey& key) const {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return nullptr;
  try {
    auto file = std::make_shared<const IndexFile>(path, kind, key);
    if (kind != kStampKind) ++state_->reused;
    return file;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    warn_(fmt::format("{}; it is built again", error.what()));
    return nullptr;
  }
}

// Training goes on without a cache: it costs time at the next start, not now.
bool IndexCache::write(const std::filesystem::path& path, uint64_t kind, const IndexKey& key,
                       const IndexFile::Numbers& numbers, const IndexFile::Arrays& arrays) const {
  try {
    IndexFile::write(path, kind, key, numbers, arrays);
    for (const auto& array : arrays) state_->bytes_written += std::ssize(array);
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    if (!state_->warned_of_writing.exchange(true)) {
      warn_(fmt::format("{}; indices are kept in memory and will be built again at the next start", error.what()));
    }
    return false;
  }
}

std::shared_ptr<const GptIndex> IndexCache::gpt_index(const GptIndexKey& key,
                                                      const std::function<std::shared_ptr<const GptIndex>()>& build,
                                                      bool again) const {
  const IndexKey hash = key.hash();
  const std::filesystem::path path = path_of("samples", hash);
  const auto from_file = [&]() -> std::shared_ptr<const GptIndex> {
    const auto file = open(path, kGptKind, hash);
    return file ? std::make_shared<const GptIndex>(file) : nullptr;
  };
  if (again) {
    warn_(fmt::format("{} is damaged: what it says is not what was written; it is built again", path.string()));
  } else {
    try {
      if (auto index = from_file()) return index;
    } catch (const DamagedIndex& error) {
      warn_(fmt::format("{}: {}; it is built again", path.string(), error.what()));
    }
  }
  auto index = build();
  ++state_->built;
  const Epochs& epochs = index->epochs_;
  const bool written =
      write(path, kGptKind, hash,
            {epochs.count, epochs.samples, epochs.separate_final_epoch ? 1 : 0, epochs.samples_before_final,
             static_cast<int64_t>(index->positions_.width), static_cast<int64_t>(index->shuffle_.width)},
            {std::as_bytes(index->documents_), std::as_bytes(index->offsets_), index->positions_.bytes,
             index->shuffle_.bytes});
  if (!written) return index;
  // From here on the pages of the file serve all processes of the machine, and memory pressure can drop them.
  auto mapped = std::make_shared<const IndexFile>(path, kGptKind, hash);
  return std::make_shared<const GptIndex>(std::move(mapped));
}

std::shared_ptr<const IndexFile> IndexCache::blend_rows(std::span<const double> weights,
                                                        std::span<const int64_t> limits, int64_t samples, int64_t every,
                                                        bool again) const {
  const std::vector<uint64_t> words{kOrderVersion,
                                    hash64(std::as_bytes(weights)),
                                    hash128(std::as_bytes(weights)).high,
                                    hash128(std::as_bytes(limits)).low,
                                    as_word(samples),
                                    as_word(every)};
  const IndexKey key = hash128(bytes_of(words));
  const std::filesystem::path path = path_of("blend", key);
  const auto row_bytes = sizeof(int64_t) * weights.size();
  const auto rows = static_cast<size_t>(samples / every + 1);
  if (again) {
    warn_(fmt::format("{} is damaged: what it says is not what was written; it is built again", path.string()));
  } else {
    if (auto file = open(path, kBlendKind, key)) {
      if (file->array(0).size() == rows * row_bytes) return file;
      warn_(fmt::format("{} is damaged: it holds another number of rows; it is built again", path.string()));
    }
  }
  std::vector<int64_t> table;
  table.reserve(rows * weights.size());
  BlendOrder order(weights, limits);
  std::vector<BlendEntry> skipped(8192);
  for (size_t row = 0; row < rows; ++row) {
    for (int64_t left = row == 0 ? 0 : every; left > 0;) {
      const auto count = std::min(left, std::ssize(skipped));
      order.next(std::span(skipped).first(static_cast<size_t>(count)));
      left -= count;
    }
    const std::vector<int64_t> taken = order.taken();
    table.insert(table.end(), taken.begin(), taken.end());
  }
  ++state_->built;
  if (!write(path, kBlendKind, key, {samples, every}, {bytes_of(table)})) return nullptr;
  return std::make_shared<const IndexFile>(path, kBlendKind, key);
}

namespace {
// The name and state of a file as the key of what is known about its content.
std::optional<IndexKey> stamp_key(const std::filesystem::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  const std::string path = std::filesystem::absolute(file).lexically_normal().string();
  const std::vector<uint64_t> words{kOrderVersion,
                                    hash128(path).low,
                                    hash128(path).high,
                                    as_word(info.st_size),
                                    as_word(info.st_mtim.tv_sec),
                                    as_word(info.st_mtim.tv_nsec),
                                    as_word(info.st_ctim.tv_sec),
                                    as_word(info.st_ctim.tv_nsec),
                                    info.st_ino};
  return hash128(bytes_of(words));
}
}  // namespace

std::optional<SourceStamp> IndexCache::find_stamp(const std::filesystem::path& file) const {
  const auto key = stamp_key(file);
  if (!key) return std::nullopt;
  const auto stamp = open(path_of("source", *key), kStampKind, *key);
  if (!stamp) return std::nullopt;
  const IndexFile::Numbers& numbers = stamp->numbers();
  return SourceStamp{.content = {static_cast<uint64_t>(numbers[0]), static_cast<uint64_t>(numbers[1])},
                     .tokens = numbers[2]};
}

void IndexCache::put_stamp(const std::filesystem::path& file, const SourceStamp& stamp) const {
  const auto key = stamp_key(file);
  if (!key) return;
  write(path_of("source", *key), kStampKind, *key,
        {static_cast<int64_t>(stamp.content.low), static_cast<int64_t>(stamp.content.high), stamp.tokens}, {});
}

}  // namespace megalith::data
