#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "train/inference/sampling.h"
#include "train/inference/text_model.h"

namespace megalith::train {

struct Prompt {
  std::string text;
  int64_t number = 0;  // random numbers are drawn for it, so that a prompt's text does not depend on the others
};

enum class TextEnd { max_tokens, end_of_document, stop_string };
std::string_view name_of(TextEnd end);

struct Generation {
  int64_t prompt_tokens = 0;
  int64_t tokens = 0;
  TextEnd end = TextEnd::max_tokens;
  bool beyond_context = false;  // its beginning was forgotten on the way
};

// How a text comes: in pieces of whole characters, those of several prompts in turns.
struct GenerateEvents {
  std::function<void(size_t prompt, std::string_view piece)> text;
  std::function<void(size_t prompt, const Generation& generation)> end;
};

// Continues the prompts, as many at a time as the model keeps sequences. User error before anything is computed for a
// prompt that the model cannot read at once; a text that grows beyond that goes on from its second half.
void generate(TextModel& model, const std::vector<Prompt>& prompts, const GenerateOptions& options,
              const GenerateEvents& events);

struct PromptLogits {
  std::vector<int32_t> tokens;  // of the prompt
  std::vector<float> logits;    // (tokens, vocabulary): those after each token
  int64_t vocabulary = 0;       // the model's, without padding
};

// What the model says of a prompt, to compare it with another program's.
PromptLogits prompt_logits(TextModel& model, const std::string& prompt);

}  // namespace megalith::train
