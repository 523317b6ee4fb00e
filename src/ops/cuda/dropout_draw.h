#pragma once

#include "ops/cuda/check.h"
#include "ops/cuda/dropout_launch.h"
#include "ops/dropout.h"

namespace megalith::ops::cuda {

// Verifies what a dropout needs to know about `rows` rows, and gathers it for a kernel. Without dropout: nothing.
inline DropoutDraw draw_of(const Dropout& dropout, int64_t rows) {
  MEGALITH_CHECK(0.0 <= dropout.probability && dropout.probability < 1.0, "dropout probability {}",
                 dropout.probability);
  if (dropout.probability == 0.0) return {};
  MEGALITH_CHECK(dropout.length > 0 && dropout.sample_ids.dtype == DType::i64 &&
                     dropout.sample_ids.elements() * dropout.length == rows,
                 "dropout of {} rows with {} samples of length {}", rows, dropout.sample_ids.elements(),
                 dropout.length);
  MEGALITH_CHECK(dropout.step != nullptr && rows < int64_t{1} << 32, "dropout of {} rows", rows);
  check_vector(dropout.sample_ids, "sample_ids", DType::i64, dropout.sample_ids.elements());
  return {.site_key = mix_key(dropout.seed, dropout.site),
          .threshold = dropout_threshold(dropout.probability),
          .scale = static_cast<float>(1.0 / (1.0 - dropout.probability)),
          .step = dropout.step,
          .sample_ids = dropout.sample_ids.as<int64_t>(),
          .length = dropout.length};
}

}  // namespace megalith::ops::cuda
