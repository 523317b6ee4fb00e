#pragma once

#include <vector>

#include "core/arena.h"
#include "core/stream.h"
#include "ops/dropout.h"

namespace megalith::model {

// Places where dropout is drawn, numbered so that no two share random numbers.
enum class DropoutSite : uint32_t { embedding = 0, attention_weights = 1, attention_output = 2, mlp_output = 3 };

// Keys and values of the tokens so far, one tensor (max_length, kv_width) per layer: generation reads them back.
struct KvCache {
  std::vector<Tensor> keys;
  std::vector<Tensor> values;
};

// What a pass over one micro batch needs beside the activations.
struct Context {
  Stream& stream;
  Arena& scratch;
  int64_t batch = 0;
  int64_t length = 0;
  int64_t position_offset = 0;
  Tensor sample_ids = {};       // (batch) i64: the samples' numbers in the training order
  Tensor document_starts = {};  // (tokens) i32: where attention stops looking back; absent: at the sample's start
  Tensor document_bounds = {};  // as ops/attention.h has them; absent: of too many documents, or of none
  Tensor positions = {};        // (tokens) i32; absent: counted along the sample
  uint64_t seed = 0;
  const uint64_t* step = nullptr;  // in the memory of the stream's device
  bool training = false;           // dropout is drawn
  bool first_of_step = false;      // weight gradients are overwritten, not added to
  bool deterministic = true;
  KvCache* cache = nullptr;

  int64_t tokens() const { return batch * length; }

  ops::Dropout dropout(double probability, int64_t layer, DropoutSite site) const {
    if (!training) return {};
    return {.probability = probability,
            .seed = seed,
            .site = static_cast<uint32_t>(layer) * 4 + static_cast<uint32_t>(site),
            .step = step,
            .sample_ids = sample_ids,
            .length = length};
  }
};

}  // namespace megalith::model
