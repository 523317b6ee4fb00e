#include "train/inference/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace megalith::train {

void check(const GenerateOptions& options) {
  const auto wrong = [](const char* option, double value, const char* wanted) {
    user_error("{} is {}: give {}", option, value, wanted);
  };
  if (!(options.temperature >= 0.0) || std::isinf(options.temperature)) {
    wrong("--temperature", options.temperature, "0 for the likeliest token, or a positive number such as 0.8");
  }
  if (!(options.top_p > 0.0 && options.top_p <= 1.0)) wrong("--top-p", options.top_p, "a number above 0, at most 1");
  if (options.top_k < 0) user_error("--top-k is {}: give 0 for all tokens, or how many to choose from", options.top_k);
  if (options.max_tokens < 1) user_error("--max-tokens is {}: give at least 1", options.max_tokens);
  if (!(options.repetition_penalty > 0.0) || std::isinf(options.repetition_penalty)) {
    wrong("--repetition-penalty", options.repetition_penalty, "1 for none, or a number above it such as 1.2");
  }
  for (const std::string& stop : options.stops) {
    if (stop.empty()) user_error("--stop is empty: give the text to stop at");
  }
}

void penalise(std::vector<float>& logits, std::span<const int32_t> ids, double penalty) {
  for (const int32_t id : ids) {
    float& logit = logits[static_cast<size_t>(id)];
    logit = static_cast<float>(logit > 0.0F ? logit / penalty : logit * penalty);
  }
}

int32_t sample_token(std::vector<float> logits, const GenerateOptions& options, double draw) {
  if (options.temperature <= 0.0) {
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (options.top_k > 0 && options.top_k < static_cast<int64_t>(order.size()))
    order.resize(static_cast<size_t>(options.top_k));

  const double highest = logits[static_cast<size_t>(order.front())];
  std::vector<double> weights;
  weights.reserve(order.size());
  for (const int32_t id : order)
    weights.push_back(std::exp((logits[static_cast<size_t>(id)] - highest) / options.temperature));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);

  // The smallest set of likeliest tokens whose probability reaches top_p.
  double kept = 0.0;
  size_t count = 0;
  while (count < weights.size() && (count == 0 || kept < options.top_p * total)) kept += weights[count++];

  double remaining = draw * kept;
  for (size_t i = 0; i < count; ++i) {
    remaining -= weights[i];
    if (remaining < 0.0) return order[i];
  }
  return order[count - 1];
}

}  // namespace megalith::train
