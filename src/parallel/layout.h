#pragma once

#include <cstdint>
#include <vector>

#include "parallel/parameter_table.h"

namespace megalith::parallel {

// How a model is divided over ranks.
struct Layout {
  int64_t tensor = 1;
  int64_t pipeline = 1;
  int64_t chunks = 1;  // per pipeline stage (virtual pipeline)
  int64_t context = 1;
  int64_t data = 1;
  bool sequence_parallel = false;
  bool shards_optimizer = false;

  int64_t world() const { return tensor * pipeline * context * data; }
};

// The shape of a rank's piece of a parameter when `tensor` ranks share it.
Shape local_shape(const ParameterSpec& spec, int64_t tensor);

// The pipeline stages that hold a parameter: one, or the first and the last for a tied embedding.
std::vector<int64_t> stages_of(const ParameterSpec& spec, const Layout& layout, int64_t layers, bool tied_embeddings);

// Micro batches whose activations `stage` holds at once under 1F1B (interleaved where chunks > 1), rounded up to whole
// stages.
int64_t micro_batches_alive(const Layout& layout, int64_t stage, int64_t micro_batches);

}  // namespace megalith::parallel
