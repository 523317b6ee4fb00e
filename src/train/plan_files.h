#pragma once

#include <filesystem>

#include "train/engine.h"

namespace megalith::train {

// Refuses a device that is not there and a model that does not fit it.
void check_device(const config::Run& run, const model::StageRequest& request);

// Makes the plans of a run on a GPU: first those that the run already used, so that a resumed run computes as before,
// then those of the cache that all runs of this user share, then by timing. Rank 0 reads and writes the files.
// `of_run`: the run's own file; where there is none yet, `of_checkpoint`, the text of that of the run it goes on from.
void make_plans(Engine& engine, const config::Run& run, const std::filesystem::path& of_run,
                const std::string& of_checkpoint = {});

// Makes all plans of a run and trains nothing: the shared file then holds them.
ops::PlanCounts compile(const config::Run& run, comm::World* world = nullptr);

}  // namespace megalith::train
