#pragma once

#include <optional>

#include "checkpoint/loaded.h"
#include "config/run_config.h"
#include "train/run/checkpoint_search.h"
#include "train/run/run_identity.h"

namespace megalith::train {

// The state that a run starts from, and the checkpoint it is taken from where there is one.
struct Origin {
  checkpoint::RunState state;
  std::optional<checkpoint::Loaded> loaded;
  bool weights_only = false;  // taken from it: the run itself is new
  int64_t generation = 0;
};

// Where a run begins: anew, or with the newest checkpoint of the run, or with the one that
// model.resume_from_checkpoint names. Every rank makes the same calls. What cannot be used is told to the log.
class OriginFinder {
 public:
  OriginFinder(const config::Run& run, RunIdentity identity, const CheckpointSearch::Options& search);

  Origin first();
  // Instead of one that could not be restored, for this reason. Data error where no other is left, and under a
  // supervisor, which names another step then, an I/O error (named_step.h).
  Origin instead_of(const Origin& bad, const std::string& reason);

 private:
  Origin continue_from(checkpoint::Loaded loaded) const;
  Origin new_run() const;
  std::string start_text() const;
  void say_passed_over() const;

  const config::Run& run_;
  RunIdentity identity_;
  checkpoint::Lineage lineage_;
  std::optional<CheckpointSearch> search_;
};

}  // namespace megalith::train
