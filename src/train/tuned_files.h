#pragma once

#include <filesystem>

#include "engine/engine.h"
#include "ops/tuning.h"
#include "train/run/tiers.h"

namespace megalith::train {

// Refuses a device that is not there and a model that does not fit it, be it a GPU or the memory of this machine.
// `tiers`: this node's, where earlier starts may have left memory that this one can use again.
void check_device(const config::Run& run, const engine::StageRequest& request, const Tiers& tiers);

// Chooses how a GPU computes each operation of a run: as the run already did, so that a resumed one computes as before;
// else as in the cache that all runs of this user share; else by timing. Rank 0 reads and writes the files.
// `of_run`: the run's own file; where there is none yet, `of_checkpoint`, the text of that of the run it goes on from.
void tune(engine::Engine& engine, const config::Run& run, const std::filesystem::path& of_run,
          const std::string& of_checkpoint = {});

// Tunes all operations of a run and trains nothing: the shared file then holds the choices. There are none on the CPU.
ops::TuningCounts compile(const config::Run& run, comm::World& world);

}  // namespace megalith::train
