#pragma once

#include "ops/cases/attention.h"

// Problems for attention on a GPU, and what the CPU makes of them.

namespace megalith::ops::testing {

inline constexpr uint64_t kAttentionStep = 11;

// The tensors of a case, wherever they lie.
struct AttentionTensors {
  Tensor q, k, v, out, log_sum_exp, dout, dq, dk, dv, starts, bounds, ids, scratch;
  const uint64_t* step = nullptr;

  AttentionForward forward(const AttentionCase& c) const;
  AttentionBackward backward(const AttentionCase& c, bool deterministic) const;
};

// "out", "log_sum_exp", "dq", "dk" and "dv", on the CPU, in double.
Named expected_of(const AttentionCase& c);

}  // namespace megalith::ops::testing
