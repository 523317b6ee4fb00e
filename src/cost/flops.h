#pragma once

#include <cstdint>

#include "config/run_config.h"

namespace megalith::cost {

// Pure arithmetic on a model's shape. `vocab` is the padded vocabulary where the padded model is meant.

// Every parameter of the model, a shared embedding once.
int64_t parameter_count(const config::Model& model, int64_t vocab);

// Weights in the matrix products that one token meets: the linear layers and the output layer; no lookups, biases,
// norms.
int64_t matmul_weights(const config::Model& model, int64_t vocab);

// FLOPs of one sample, forward and backward, by the one definition (docs/design.md, section 6): 6 x matmul_weights x
// tokens, and attention counted in full: 12 x layers x width of all heads x tokens^2. TFLOPS and MFU use it.
double model_flops_per_sample(const config::Model& model, int64_t vocab);

// The same with only the tokens x (tokens + 1) / 2 products of attention that a causal mask leaves.
double causal_flops_per_sample(const config::Model& model, int64_t vocab);

}  // namespace megalith::cost
