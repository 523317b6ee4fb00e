#pragma once

#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "checkpoint/format/manifest.h"
#include "checkpoint/format/shard.h"

namespace megalith::checkpoint {

// A committed checkpoint, open for reading. Every byte is checked against its digest on its way into memory.
class Loaded {
 public:
  // Reads the manifest; refuses with a data error what does not fit together, or shards that are not there.
  static Loaded open(const std::filesystem::path& step_directory);

  // Where a shard may be, the best first: it is taken from the first whose bytes are right.
  using PlacesOf = std::function<std::vector<ShardPlace>(const ShardInfo& shard)>;
  // `name`: how the checkpoint is called in messages.
  Loaded(std::filesystem::path name, Manifest manifest, const PlacesOf& places_of);

  const std::filesystem::path& path() const { return path_; }
  const Manifest& manifest() const { return *manifest_; }
  // Null where there is no such tensor.
  const TensorInfo* find(TensorKind kind, const std::string& name) const;
  bool has(TensorKind kind, const std::string& name) const { return find(kind, name) != nullptr; }

  // Fills CPU memory of exactly the stored type and shape. Fastest in the order of manifest().tensors.
  void load_tensor(TensorKind kind, const std::string& name, const Tensor& into);
  // The same for a part of it: `into` has the type of the tensor and the extent of the box.
  void load_box(TensorKind kind, const std::string& name, const Box& box, const Tensor& into);

  // Reads every byte of every shard that was not read yet.
  void verify();
  // Of all shards, one after the other: those that were read and are as they were written.
  std::vector<bool> verified_chunks() const;
  // Counted in the same way.
  void verify_chunk(int64_t chunk);

  // What was found damaged, also where another place had the right bytes.
  std::vector<BadShardPlace> bad_places() const;

 private:
  const TensorInfo& get(TensorKind kind, const std::string& name) const;
  Shard& to_read(size_t shard);
  void load_piece(const TensorInfo& tensor, const TensorPiece& piece, const Box& box, const Tensor& into);

  std::filesystem::path path_;
  std::unique_ptr<const Manifest> manifest_;  // does not move: shards refer to it
  std::vector<Shard> shards_;
  std::list<size_t> open_;  // the last one read is the first
  std::unordered_map<std::string, size_t> shard_index_;
  std::map<std::pair<TensorKind, std::string_view>, const TensorInfo*> tensors_;
};

}  // namespace megalith::checkpoint
