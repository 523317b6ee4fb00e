#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/verified_file.h"

namespace megalith::checkpoint {

// A committed checkpoint, open for reading. Every byte is checked against its digest on its way into memory.
class Loaded {
 public:
  // Reads the manifest and the headers of the shards; refuses with a data error what does not fit together.
  static Loaded open(const std::filesystem::path& step_directory);

  const std::filesystem::path& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  bool has(TensorKind kind, const std::string& name) const;

  // Fills CPU memory of exactly the stored type and shape. Fastest in the order of manifest().tensors.
  void load_tensor(TensorKind kind, const std::string& name, const Tensor& into);

  // Reads every byte of every shard.
  void verify();

 private:
  struct Shard {
    VerifiedFile file;
    std::unique_ptr<SafetensorsReader> reader;
  };

  Loaded(std::filesystem::path path, Manifest manifest);
  void check_tensors() const;

  std::filesystem::path path_;
  Manifest manifest_;
  std::unordered_map<std::string, std::unique_ptr<Shard>> shards_;  // by file name
  std::unordered_map<std::string, Shard*> tensors_;                 // by stored name
};

}  // namespace megalith::checkpoint
