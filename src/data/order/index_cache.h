#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/order/blend_order.h"
#include "data/order/gpt_index.h"
#include "data/order/index_file.h"
#include "data/order/splits.h"

namespace megalith::data {

// All that the order of a dataset's samples depends on. Not a path: data that moved keeps its index, and other data
// under an old name gets a new one.
struct GptIndexKey {
  IndexKey content;  // of the lengths
  SequenceRange range;
  int64_t sequence_length = 0;
  int64_t horizon = 0;
  uint32_t seed = 0;

  IndexKey hash() const;
};

// What was found out about a file of lengths when all of it was read.
struct SourceStamp {
  IndexKey content;
  int64_t tokens = 0;
};

// Indices in a directory, shared by all processes that see it. What is missing or damaged is built again; a directory
// that cannot be written to is a warning, and the index stays in memory. Thread-safe.
class IndexCache {
 public:
  using Warn = std::function<void(const std::string&)>;
  struct Counts {
    int64_t built = 0;
    int64_t reused = 0;
    int64_t bytes_written = 0;
  };

  // Creates the directory. Warnings go to stderr unless told otherwise.
  explicit IndexCache(std::filesystem::path directory, Warn warn = {});
  ~IndexCache();

  const std::filesystem::path& directory() const { return directory_; }
  Counts counts() const;

  // `again`: what lies there was found damaged and is not to be opened.
  std::shared_ptr<const GptIndex> gpt_index(const GptIndexKey& key,
                                            const std::function<std::shared_ptr<const GptIndex>()>& build,
                                            bool again = false) const;

  // What BlendOrder::taken() says at 0, every, 2 x every, ... up to `samples`, row by row.
  std::shared_ptr<const IndexFile> blend_rows(std::span<const double> weights, std::span<const int64_t> limits,
                                              int64_t samples, int64_t every, bool again = false) const;

  // A stamp is good while the file's size, time of change and inode are the same.
  std::optional<SourceStamp> find_stamp(const std::filesystem::path& file) const;
  void put_stamp(const std::filesystem::path& file, const SourceStamp& stamp) const;

 private:
  struct State;
  std::filesystem::path path_of(const char* kind, const IndexKey& key) const;
  std::shared_ptr<const IndexFile> open(const std::filesystem::path& path, uint64_t kind, const IndexKey& key) const;
  bool write(const std::filesystem::path& path, uint64_t kind, const IndexKey& key, const IndexFile::Numbers& numbers,
             const IndexFile::Arrays& arrays) const;

  std::filesystem::path directory_;
  Warn warn_;
  std::unique_ptr<State> state_;
};

}  // namespace megalith::data
