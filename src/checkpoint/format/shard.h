#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/format/manifest.h"
#include "checkpoint/format/safetensors.h"
#include "checkpoint/format/verified_bytes.h"
#include "core/error.h"

namespace megalith::checkpoint {

// A place that a shard could not be taken from.
struct BadShardPlace {
  std::filesystem::path file;  // empty: on another node
  std::string reason;
  bool damaged = false;  // its bytes are wrong; else it could not be read
};

// One shard of a checkpoint, read from the first of several places whose bytes are right. Opened when needed: a rank
// reads few of the shards of a large checkpoint. Not thread-safe.
class Shard {
 public:
  struct Tensor {
    std::string name;  // within the shard
    DType dtype = DType::f32;
    Shape shape;
  };

  // `info` must outlive it. `places`: the best first.
  Shard(const ShardInfo& info, std::vector<ShardPlace> places);

  // What the manifest says that it holds.
  void expect(Tensor tensor) { expected_.push_back(std::move(tensor)); }

  // From `offset` bytes after the beginning of a tensor.
  void read(const std::string& tensor, int64_t offset, std::span<std::byte> into);

  int64_t chunks() const { return static_cast<int64_t>(info_->digests.chunks.size()); }
  bool is_verified(int64_t chunk) const { return verified_[static_cast<size_t>(chunk)]; }
  void verify_chunk(int64_t chunk) { verify(chunk, chunk + 1); }
  // All that were not read yet.
  void verify();

  // Gives up the memory and the file until they are needed again.
  void close() { bytes_.reset(); }

  // Those that were tried and given up, though there was something.
  const std::vector<BadShardPlace>& bad_places() const { return bad_places_; }

 private:
  // Runs `action` on what is open, and on the next place's where it finds a fault.
  template <class Action>
  void try_places(const Action& action);
  void open();
  void verify(int64_t first, int64_t last);
  void give_up_place(const Error& reason);
  void read_at(int64_t offset, std::span<std::byte> into);
  void check_contents(const SafetensorsReader& reader) const;

  const ShardInfo* info_;
  std::vector<ShardPlace> places_;
  std::vector<Tensor> expected_;
  std::unique_ptr<VerifiedBytes> bytes_;
  std::unique_ptr<SafetensorsReader> reader_;
  std::vector<bool> verified_;
  std::vector<BadShardPlace> bad_places_;
};

}  // namespace megalith::checkpoint
