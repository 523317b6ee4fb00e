#pragma once

#include "ops/cuda/check.h"
#include "ops/cuda/dropout_launch.h"
#include "ops/dropout.h"

namespace megalith::ops::cuda {

// Verifies what a dropout needs to know about `rows` rows, and gathers it for a kernel. Without dropout: nothing. The
// values of first_positions are not looked at.
inline DropoutDraw draw_of(const Dropout& dropout, int64_t rows) {
  MEGALITH_CHECK(0.0 <= dropout.probability && dropout.probability < 1.0, "dropout probability {}",
                 dropout.probability);
  if (dropout.probability == 0.0) return {};
  const int64_t samples = dropout.sample_ids.elements();
  MEGALITH_CHECK(dropout.length > 0 && dropout.first_row >= 0 && dropout.first_row + rows <= samples * dropout.length,
                 "dropout of {} rows from {} on, of {} samples of length {}", rows, dropout.first_row, samples,
                 dropout.length);
  MEGALITH_CHECK(dropout.step != nullptr && samples * dropout.length < int64_t{1} << 32, "dropout of {} rows",
                 samples * dropout.length);
  check_vector(dropout.sample_ids, "sample_ids", DType::i64, samples);
  if (dropout.first_positions) check_vector(dropout.first_positions, "first_positions", DType::i32, samples);
  return {.site_key = mix_key(dropout.seed, dropout.site),
          .threshold = dropout_threshold(dropout.probability),
          .scale = static_cast<float>(1.0 / (1.0 - dropout.probability)),
          .step = dropout.step,
          .sample_ids = dropout.sample_ids.as<int64_t>(),
          .first_positions = data_or_null<int32_t>(dropout.first_positions),
          .length = dropout.length,
          .first_row = dropout.first_row};
}

}  // namespace megalith::ops::cuda
