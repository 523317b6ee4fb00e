#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/loaded.h"
#include "config/run_config.h"
#include "data/splits.h"

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

struct GenerateOptions {
  std::string prompt;
  int64_t max_tokens = 200;
  double temperature = 1.0;  // 0: greedy
  int64_t top_k = 0;         // 0: all
  double top_p = 1.0;
  uint64_t seed = 0;
};

struct Generation {
  int64_t prompt_tokens = 0;
  int64_t tokens = 0;
  double seconds = 0.0;
  bool ended = false;  // by the end-of-document token
};

// Continues the prompt; hands text out as it comes, in whole characters.
Generation generate(checkpoint::Loaded& checkpoint, const config::Run& run, const GenerateOptions& options,
                    const std::function<void(std::string_view)>& emit);

struct PromptLogits {
  std::vector<int32_t> tokens;  // of the prompt
  std::vector<float> logits;    // (tokens, vocabulary): those after each token
  int64_t vocabulary = 0;       // the model's, without padding
};

// What the model says of a prompt, to compare it with another program's.
PromptLogits prompt_logits(checkpoint::Loaded& checkpoint, const config::Run& run, const std::string& prompt);

// The id that the options choose from `logits`; `draw` is uniform in [0, 1).
int32_t sample_token(std::vector<float> logits, const GenerateOptions& options, double draw);

}  // namespace megalith::train
