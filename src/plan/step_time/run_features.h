#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/emulated/wire.h"
#include "cost/hardware.h"

namespace megalith::plan {

enum class Sharding { none, zero1, fsdp };
enum class Recomputed { none, core_attention, selective, full };
enum class AttentionKernel { unfused, flash2, cudnn };
enum class KernelLaunch { graphs, eager, blocking };

struct ModelShape {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn = 0;
  bool gated = false;
  int64_t vocabulary = 0;  // padded
  bool tied = false;
  int64_t length = 0;  // tokens of a sample

  int64_t query_width() const { return heads * head_dim; }
  int64_t kv_width() const { return kv_heads * head_dim; }
  double layer_weights() const;
  // docs/design.md, section 6.
  double flops_per_sample() const;
};

// All that the model of step time knows of a run: what it does, never whose it is.
struct RunFeatures {
  ModelShape model;
  cost::Accelerator gpu;
  cost::Network network;
  std::shared_ptr<const comm::Wire> wire = {};  // calls as they were measured; absent: by data sheets
  int64_t gpus = 1;
  int64_t gpus_per_node = 8;
  bool fp8 = false;

  int64_t tensor = 1;
  bool sequence_parallel = false;
  int64_t pipeline = 1;
  int64_t chunks = 1;
  std::vector<int64_t> stage_layers = {};  // empty: equal
  bool zero_bubble = false;
  int64_t context = 1;
  int64_t data = 1;
  Sharding sharding = Sharding::zero1;
  int64_t shard_group = 1;

  int64_t micro_batch = 1;
  int64_t global_batch = 1;
  Recomputed recompute = Recomputed::none;
  AttentionKernel attention = AttentionKernel::cudnn;
  bool dropout = false;
  KernelLaunch launch = KernelLaunch::eager;
  int64_t gradient_bytes = 2;
  bool tensor_overlaps = false;
  bool data_overlaps = false;
  bool pipeline_overlaps = false;
  bool context_overlaps = true;  // keys and values go round a ring behind attention; else they are gathered before it
  bool python = true;            // the host runs Python, which costs something every step

  int64_t micro_batches() const { return global_batch / (micro_batch * data); }
  int64_t replicas() const { return data * context; }
  int64_t layers_of_stage(int64_t stage) const;
  double tokens() const;  // of a micro batch, on a rank
  // GPUs that NVLink or its like joins.
  int64_t scale_up() const;
};

// Why the layout cannot be; empty where it can.
std::string layout_problem(const RunFeatures& run);

}  // namespace megalith::plan
