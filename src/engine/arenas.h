#pragma once

#include <array>
#include <vector>

#include "core/arena.h"

namespace megalith::engine {

// Bytes of the memory that one rank computes with.
struct ArenaSizes {
  int64_t weights = 0;
  int64_t gradients = 0;
  int64_t masters = 0;
  int64_t moments = 0;
  int64_t optimizer = 0;
  int64_t activations = 0;
  int64_t reduction = 0;
  int64_t scratch = 0;
  int64_t batch = 0;
  int64_t fp8 = 0;
  std::vector<int64_t> deferred = {};  // of each slot, by chunk; empty: no weight gradients are deferred
};

// The arenas of one rank.
struct Arenas {
  Arenas(Device device, const ArenaSizes& sizes);
  Arenas(Device device, Shadow shadow);

  std::array<const Arena*, 10> all() const {
    return {&weights, &gradients, &masters, &moments, &optimizer, &activations, &reduction, &scratch, &batch, &fp8};
  }

  Arena weights;
  Arena gradients;
  Arena masters;
  Arena moments;
  Arena optimizer;
  Arena activations;
  Arena reduction;
  Arena scratch;
  Arena batch;
  Arena fp8;  // copies of weights, scales and their histories
};

}  // namespace megalith::engine
