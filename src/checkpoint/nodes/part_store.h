#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/store.h"

namespace megalith::checkpoint {

// A part that its rank has committed, and the file that holds it.
struct HeldPart {
  Manifest manifest;
  std::filesystem::path shard;

  std::filesystem::path manifest_path() const;
};

// The local tier: what the ranks of one node keep on its disk or in its memory. Nobody sees what all nodes have
// written, so each rank commits its own part (layout.h); whether a step is complete is found out when it is loaded.
class PartStore {
 public:
  explicit PartStore(std::filesystem::path directory) : directory_(std::move(directory)) {}

  const std::filesystem::path& directory() const { return directory_; }

  // Writes the shard and then the manifest that commits it, durably.
  void save(const RunState& state, const Part& part, const ShardContent& content, int64_t generation) const;
  struct Retention {
    int64_t keep = 0;             // newest parts
    int64_t protected_step = -1;  // kept as well; -1: none
    std::string run_id = {};      // parts of other runs stay; empty: of all runs
  };
  // Removes every file of the rank but those to be kept: also what a crash left unfinished.
  void retain(int64_t rank, const Retention& retention) const;

  // Of all ranks, newest first. What is damaged or foreign is passed over.
  std::vector<HeldPart> list() const;

 private:
  std::filesystem::path directory_;
};

// The images of each rank in memory, one or two by turns, each overwritten in place by a snapshot: a directory without
// steps. The shard's bytes are put there by whoever took the snapshot; they count while the manifest is there and its
// digests fit.
class MemoryParts {
 public:
  static constexpr int64_t kMostImages = 2;

  explicit MemoryParts(std::filesystem::path directory) : directory_(std::move(directory)) {}

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path shard_of(int64_t rank, int64_t image = 0) const;

  struct Content {
    const std::vector<ShardContent::Piece>& pieces;
    const FileDigests& digests;
    int64_t image = 0;
  };
  void commit(const RunState& state, const Part& part, const Content& content) const;
  // Before the shard is overwritten.
  void revoke(int64_t rank, int64_t image = 0) const;
  // The rank's files.
  void remove(int64_t rank) const;
  // Those of ranks that a run no longer has.
  void remove_from(int64_t first_rank) const;

  std::vector<HeldPart> list() const;
  // Of each image of a rank the step of this run that it holds; -1: none.
  std::vector<int64_t> steps_of(int64_t rank, const std::string& run_id) const;

 private:
  std::filesystem::path directory_;
};

}  // namespace megalith::checkpoint
