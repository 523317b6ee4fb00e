#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/loaded.h"
#include "checkpoint/manifest.h"
#include "core/tensor.h"

namespace megalith::checkpoint {

struct NamedTensor {
  std::string name;  // the logical name
  TensorKind kind = TensorKind::weights;
  Tensor tensor;  // whole, in CPU memory, unchanged until save() returns
};

struct Snapshot {
  RunState state;
  std::vector<NamedTensor> tensors;
};

struct SaveResult {
  std::filesystem::path path;
  int64_t bytes = 0;
  std::vector<std::string> removed;   // older checkpoints that retention took away
  std::vector<std::string> warnings;  // what went wrong after the commit: the checkpoint itself is safe
};

enum class StepStatus { committed, incomplete, damaged };

struct StepInfo {
  int64_t step = 0;
  std::filesystem::path path;
  StepStatus status = StepStatus::committed;
  std::string reason;  // why it is not committed
};

struct PassedOver {
  std::string name;
  std::string reason;
};

struct Latest {
  std::optional<int64_t> step;  // nothing: there is no checkpoint to go on from
  std::filesystem::path path;
  std::vector<PassedOver> passed_over;  // newer ones that cannot be used; the caller says so
};

// The checkpoints of one run, one directory per step (layout.h). One process writes at a time; readers need no lock.
class Store {
 public:
  static constexpr int64_t kKeepAll = -1;

  explicit Store(std::filesystem::path directory, int64_t keep = kKeepAll);

  // Writes the tensors, then the manifest, which is the commit; then the tracker file and retention. If it throws, the
  // checkpoints that were there are untouched and what was begun is gone. Blocks until everything is durable.
  SaveResult save(const Snapshot& snapshot);

  // Newest first. Reads manifests, not tensors.
  std::vector<StepInfo> list() const;
  // The newest step of which every byte is as it was written.
  Latest latest_verified();
  Loaded open(int64_t step) const;

  const std::filesystem::path& directory() const { return directory_; }

 private:
  Manifest write_shard(const Snapshot& snapshot, const std::filesystem::path& step_directory,
                       const std::string& name) const;
  void discard(const std::filesystem::path& step_directory, const std::string& shard) const;
  void after_commit(const Manifest& manifest, SaveResult& result);
  void remove_orphans(const Manifest& manifest) const;

  // retention.cpp
  void apply_retention(int64_t saved_step, SaveResult& result);
  void remove_step(const StepInfo& step, SaveResult& result) const;
  void empty_trash() const;
  void verify(const StepInfo& step);
  bool verified(const StepInfo& step);

  std::filesystem::path directory_;
  int64_t keep_;
  std::set<std::string> verified_;  // digests of the manifests whose checkpoints this object has read in full
};

// What a user names: one checkpoint's directory, or a directory of them, whose newest good one is taken (`passed_over`
// says which were not).
Loaded open_checkpoint(const std::filesystem::path& path, std::vector<PassedOver>& passed_over);

}  // namespace megalith::checkpoint
