#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/format/manifest.h"
#include "checkpoint/lineage.h"
#include "checkpoint/loaded.h"
#include "core/tensor.h"

namespace megalith::checkpoint {

struct NamedTensor {
  std::string name;  // the logical name
  TensorKind kind = TensorKind::weights;
  Tensor tensor;  // whole, in CPU memory, unchanged while it is saved
};

struct Snapshot {
  RunState state;
  std::vector<NamedTensor> tensors;
};

// What one of the ranks that save together writes.
struct ShardContent {
  struct Piece {
    std::string name;
    TensorKind kind = TensorKind::weights;
    DType dtype = DType::f32;
    Shape whole;
    Box box;
  };
  std::vector<Piece> pieces;
  std::function<FileDigests(File& file)> write;
};

// Of a shard that holds these pieces.
Manifest manifest_of_part(const RunState& state, const Part& part, ShardInfo shard,
                          const std::vector<ShardContent::Piece>& pieces);

struct SaveResult {
  std::filesystem::path path;
  int64_t bytes = 0;
  std::vector<std::string> removed;   // older checkpoints that retention took away
  std::vector<std::string> warnings;  // what went wrong after the commit: the checkpoint itself is safe
};

enum class StepStatus {
  committed,
  incomplete,  // a save that was cut short: nothing is lost with it
  damaged,
};

struct StepInfo {
  int64_t step = 0;
  std::filesystem::path path;
  StepStatus status = StepStatus::committed;
  std::string reason;   // why it is not committed
  RunState state = {};  // of a committed one
};

struct PassedOver {
  std::string name;
  std::string reason;
  bool unfinished = false;  // a save that was cut short: nothing is lost with it
  int64_t step = -1;        // -1: it is not known
};

struct Latest {
  std::optional<int64_t> step;  // nothing: there is no checkpoint to go on from
  std::filesystem::path path;
  std::vector<PassedOver> passed_over;  // newer ones that cannot be used; the caller says so
};

// Which checkpoints are worth keeping: those with the best of a number in their state, and always the newest.
struct Ranking {
  std::string by = {};  // a key of RunState::extra; empty: the newest are the best
  bool largest = false;
};

// Throws where this process may change a directory of checkpoints no longer, because the run has gone on without it.
using Fence = std::function<void()>;

// The checkpoints of one run, one directory per step (layout.h). One process writes at a time, or several ranks
// together; readers need no lock. What another run has saved there is neither overwritten nor removed.
class Store {
 public:
  static constexpr int64_t kKeepAll = -1;

  explicit Store(std::filesystem::path directory, int64_t keep = kKeepAll, Ranking ranking = {});

  // Asked right before a commit, and before anything is removed.
  void set_fence(Fence fence) { fence_ = std::move(fence); }

  // Writes the tensors, then the manifest, which is the commit; then the tracker file and retention. If it throws, the
  // checkpoints that were there are untouched and what was begun is gone. Blocks until everything is durable.
  SaveResult save(const Snapshot& snapshot);

  // The same in steps, for ranks that save together: each writes its part, one of them commits the merged manifest.
  // `generation` counts the starts of the run; a name that is taken (an earlier start died here) counts it up.
  Manifest write_part(const RunState& state, const Part& part, const ShardContent& content, int64_t generation) const;
  SaveResult commit(const Manifest& whole);
  // Takes back what write_part() wrote, unless it has been committed.
  void discard(const Manifest& part) const;
  // Takes what lies behind the newest good ones away. `verified`: the step just saved was read back already.
  void apply_retention(const Manifest& saved, bool verified, SaveResult& result);
  // Removes what a crash left of a removal.
  void empty_trash() const;
  // Has the tracker file name the newest commit, where a crash came between the two.
  void catch_up_tracker() const;
  // Takes the checkpoints of this run away that its lineage gives up, and says which and why. They are trash from then
  // on, which the next retention empties.
  std::vector<std::string> set_given_up_aside(const std::string& run_id, const Lineage& lineage) const;

  // Newest first. Reads manifests, not tensors.
  std::vector<StepInfo> list() const;
  // The step that was committed last, as the tracker file says; nothing where there is no such file.
  std::optional<int64_t> last_committed() const;
  // The newest step of which every byte is as it was written.
  Latest latest_verified();
  Loaded open(int64_t step) const;
  // Its bytes have been read and are right.
  void note_verified(const Manifest& manifest) { verified_.insert(digest_of(encode(manifest))); }

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path directory_of(int64_t step) const;

 private:
  void after_commit(const Manifest& manifest, SaveResult& result) const;
  void remove_orphans(const Manifest& manifest) const;
  void remove_unfinished(const Manifest& manifest, SaveResult& result) const;

  void pass_fence() const;
  void replace_manifest(const std::filesystem::path& path, const std::string& text) const;

  // retention.cpp
  std::filesystem::path move_to_trash(const StepInfo& step) const;
  void remove_step(const StepInfo& step, SaveResult& result) const;
  void sort_best_first(std::vector<StepInfo>& steps) const;
  void verify(const StepInfo& step);
  bool verified(const StepInfo& step);

  std::filesystem::path directory_;
  int64_t keep_;
  Ranking ranking_;
  Fence fence_;
  std::set<std::string> verified_;  // digests of the manifests whose checkpoints were read in full
};

// What a user names: one checkpoint's directory, or a directory of them, whose newest good one is taken (`passed_over`
// says which were not).
Loaded open_checkpoint(const std::filesystem::path& path, std::vector<PassedOver>& passed_over);

}  // namespace megalith::checkpoint
