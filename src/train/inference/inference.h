#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/loaded.h"
#include "config/run_config.h"
#include "data/order/splits.h"

namespace megalith::train {

// A checkpoint by any name that a person gives it: a step's directory, a `checkpoints` directory (then its newest
// verified step) or a run directory. Damaged ones that are passed over are told to the log.
checkpoint::Loaded open_checkpoint(const std::filesystem::path& path);

// The config that a checkpoint was trained with, its tokenizer the one that lies beside it, changed by `overrides`,
// validated for one CPU rank.
config::Run config_of(const checkpoint::Loaded& checkpoint, const std::vector<std::string>& overrides);

struct EvaluateOptions {
  data::Split split = data::Split::valid;
  int64_t batches = 0;  // micro batches; 0: the whole split, once
};

struct Evaluation {
  int64_t step = 0;
  int64_t tokens = 0;
  double loss = 0.0;  // nats per token
  double seconds = 0.0;
};

Evaluation evaluate(checkpoint::Loaded& checkpoint, const config::Run& run, const EvaluateOptions& options);

}  // namespace megalith::train
