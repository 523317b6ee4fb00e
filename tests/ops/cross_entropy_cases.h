#pragma once

#include <utility>

#include "core/rng.h"
#include "ops/cross_entropy.h"
#include "ops/op_test.h"

namespace megalith::ops::testing {

struct CrossEntropyCase {
  int64_t rows, vocabulary, padded;
  int64_t gap = 0;
};
inline constexpr double kGradientScale = 0.25;

inline Runner run_cross_entropy(const CrossEntropyCase& c, bool with_gradient) {
  return [c, with_gradient](Stream& stream, DType dtype, const Named& in) {
    const Buffer logits(dtype, c.rows, c.padded, c.gap, in.at("logits"));
    const Buffer targets = vector_of(DType::i32, in.at("targets"));
    const Buffer weights = vector_of(main_dtype(dtype), in.at("weights"));
    const Buffer losses(main_dtype(dtype), 1, c.rows);
    const Placed<double> scale(kGradientScale);
    cross_entropy(stream, {.logits = logits.tensor(),
                           .targets = targets.vector(),
                           .weights = weights.vector(),
                           .losses = losses.vector(),
                           .vocabulary = c.vocabulary,
                           .with_gradient = with_gradient,
                           .gradient_scale = scale.data()});
    return Named{{"losses", losses.values()}, {"logits", logits.values()}};
  };
}

// Some rows are ignored.
inline Named inputs_of(const CrossEntropyCase& c) {
  Named in{{"logits", random_values(c.rows * c.padded, 1, 3.0)}};
  for (int64_t r = 0; r < c.rows; ++r) {
    const bool ignored = r % 3 == 1;
    in["weights"].push_back(ignored ? 0.0 : 0.5 + static_cast<double>(r % 2));
    in["targets"].push_back(ignored ? -1.0 : philox(5, {static_cast<uint32_t>(r), 0, 0, 0})[0] % c.vocabulary);
  }
  return in;
}

// The backward pass of `run`, which makes a gradient of the logits. The row weights are the seed of the loss, so the
// seed goes there.
inline Runner seeded_backward(Runner run) {
  return [run = std::move(run)](Stream& stream, DType dtype, const Named& in) {
    Named seeded = in;
    for (size_t r = 0; r < seeded["weights"].size(); ++r) {
      seeded["weights"][r] *= in.at("dlosses")[r] / kGradientScale;
    }
    return Named{{"dlogits", run(stream, dtype, seeded).at("logits")}};
  };
}

}  // namespace megalith::ops::testing
