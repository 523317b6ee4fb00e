#pragma once

#include "cost/memory.h"
#include "model/model_config.h"
#include "parallel/layout.h"

namespace megalith::model {

struct MemoryRequest {
  ModelConfig config;
  parallel::Layout layout = {};
  int64_t batch = 0;  // micro batch
  int64_t length = 0;
  int64_t micro_batches = 1;  // per step and data-parallel rank
  Device device = Device::cpu;
  int threads = 1;  // of the host
  bool training = true;
};

// How many documents of a micro batch attention is given the bounds of, at most; 0: it has no use for bounds.
int64_t document_room(const ModelConfig& config, Device device, int64_t tokens);

// What a rank of pipeline stage `stage` needs.
cost::MemoryTable memory_of_stage(const MemoryRequest& request, int64_t stage);

struct WorstRank {
  int64_t stage = 0;
  cost::MemoryTable table;
};
WorstRank memory_of_worst_rank(const MemoryRequest& request);

}  // namespace megalith::model
