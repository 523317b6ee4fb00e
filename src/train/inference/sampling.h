#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace megalith::train {

struct GenerateOptions {
  int64_t max_tokens = 200;
  double temperature = 1.0;  // 0: greedy
  int64_t top_k = 0;         // 0: all
  double top_p = 1.0;
  double repetition_penalty = 1.0;  // of tokens that the text holds; 1: none
  uint64_t seed = 0;
  std::vector<std::string> stops;
};

// User error, in the words of the command line, for what no text can be chosen by.
void check(const GenerateOptions& options);

// The id that the options choose from `logits`; `draw` is uniform in [0, 1).
int32_t sample_token(std::vector<float> logits, const GenerateOptions& options, double draw);

// Makes the ids less likely by a factor, whatever the signs of their logits (Keskar et al., "CTRL", 2019, as
// transformers has it).
void penalise(std::vector<float>& logits, std::span<const int32_t> ids, double penalty);

}  // namespace megalith::train
