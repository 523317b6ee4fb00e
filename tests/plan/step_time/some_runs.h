#pragma once

#include "plan/step_time/run_features.h"

namespace megalith::testing {

// GPT-3 13B or so on 8 nodes, in a layout with some of everything but context parallelism.
inline plan::RunFeatures some_run() {
  const cost::Hardware hardware;
  return {.model = {.layers = 40,
                    .hidden = 5120,
                    .heads = 40,
                    .kv_heads = 40,
                    .head_dim = 128,
                    .ffn = 20480,
                    .vocabulary = 51200,
                    .length = 2048},
          .gpu = hardware.accelerator("h100"),
          .network = hardware.network("ndr-8x400"),
          .gpus = 64,
          .tensor = 4,
          .sequence_parallel = true,
          .pipeline = 4,
          .chunks = 2,
          .data = 4,
          .shard_group = 4,
          .micro_batch = 2,
          .global_batch = 256};
}

}  // namespace megalith::testing
