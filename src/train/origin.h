#pragma once

#include <optional>

#include "checkpoint/store.h"
#include "config/run_config.h"
#include "train/run_directory.h"

namespace megalith::train {

// The state that a run starts from, and the checkpoint it is taken from where there is one.
struct Origin {
  checkpoint::RunState state;
  std::optional<checkpoint::Loaded> loaded;
  int64_t generation = 0;
};

// A new run, or the newest checkpoint of the run directory that verifies, or the one that model.resume_from_checkpoint
// names. What cannot be used is told to the log; a data error where there are checkpoints and none can be used.
Origin find_origin(const config::Run& run, const RunDirectory& directory, checkpoint::Store& store);

// On a rank that follows another: from the checkpoint that rank 0 has found; empty: a new run.
Origin origin_of_rank(const config::Run& run, const std::filesystem::path& checkpoint);

}  // namespace megalith::train
