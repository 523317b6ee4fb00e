#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checkpoint/format/safetensors.h"

namespace megalith::checkpoint {

// The files of a Hugging Face directory that hold weights:
//   model.safetensors                                                    all of them, or
//   model-00001-of-00003.safetensors, ..., model.safetensors.index.json  some in each, and which
inline constexpr const char* kHuggingFaceConfig = "config.json";
inline constexpr const char* kSingleFile = "model.safetensors";
inline constexpr const char* kIndexFile = "model.safetensors.index.json";

// Text of a file in a directory that others made: links are refused with advice, for they may lead anywhere.
std::string read_foreign_text(const std::filesystem::path& path);

// Any file in safetensors layout, believed in nothing that was not checked.
class ForeignFile {
 public:
  explicit ForeignFile(const std::filesystem::path& path);
  ForeignFile(const ForeignFile&) = delete;
  ForeignFile& operator=(const ForeignFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const SafetensorsReader& reader() const { return reader_; }
  // All of the tensor's bytes, as they are.
  void read_bytes(const TensorEntry& entry, std::span<std::byte> into) const;

 private:
  std::filesystem::path path_;
  File file_;
  SafetensorsReader reader_;
};

// The weights of a directory, whatever files they are in.
class ForeignWeights {
 public:
  struct Location {
    const ForeignFile* file = nullptr;
    const TensorEntry* entry = nullptr;
  };

  // Refuses an index and files that do not say the same.
  static ForeignWeights open(const std::filesystem::path& directory);

  size_t files() const { return files_.size(); }
  const Location* find(const std::string& name) const;
  const std::unordered_map<std::string, Location>& all() const { return locations_; }

 private:
  void add_file(const std::filesystem::path& path);

  std::vector<std::unique_ptr<ForeignFile>> files_;
  std::unordered_map<std::string, Location> locations_;
};

// "model.safetensors" where there is only one, "model-00002-of-00003.safetensors" else; numbers from 1.
std::string weights_file_name(size_t number, size_t count);

// `files`: which file each tensor is in.
std::string write_index(const std::vector<std::pair<std::string, std::string>>& files, int64_t total_bytes);

}  // namespace megalith::checkpoint
