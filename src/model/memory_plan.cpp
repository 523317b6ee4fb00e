#include "model/memory_plan.h"

#include "model/head.h"
#include "model/parameters.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/norm.h"
#include "ops/optimizer.h"

namespace megalith::model {

namespace {

// Resident before and beside the arenas, measured on the release build: code and heap of the program, and one packing
// buffer of OpenBLAS per thread.
constexpr int64_t kProgramBytes = int64_t{24} << 20;
constexpr int64_t kBytesPerThread = int64_t{16} << 20;
// CUDA context, cuBLAS and cuDNN handles.
constexpr int64_t kGpuBytes = int64_t{1} << 30;

}  // namespace

int64_t document_room(const ModelConfig& config, Device device, int64_t tokens) {
  const bool has_use = config.masks_documents && config.attention_dropout == 0.0 && config.compute == DType::bf16 &&
                       device == Device::cuda;
  return has_use ? ops::document_room(tokens) : 0;
}

cost::MemoryTable memory_of_stage(const MemoryRequest& request, int64_t stage) {
  const ModelConfig& c = request.config;
  const parallel::Layout& layout = request.layout;
  const bool on_cpu = request.device == Device::cpu;
  const bool last = stage == layout.pipeline - 1;
  const int64_t length = ceil_div(request.length, layout.context);
  const int64_t tokens = request.batch * length;

  cost::MemoryInputs inputs{
      .compute = c.compute,
      .training = request.training,
      .optimizer_shards = layout.shards_optimizer ? layout.data * layout.context : 1,
      .layers = div_exact(c.layers, layout.pipeline),
      .micro_batches_alive = parallel::micro_batches_alive(layout, stage, request.micro_batches),
      .batch = request.batch,
      .length = length,
      .norm_tokens = layout.sequence_parallel ? ceil_div(tokens, layout.tensor) : tokens,
      .hidden = c.hidden,
      .heads = ceil_div(c.heads, layout.tensor),
      .query_width = ceil_div(c.query_width(), layout.tensor),
      .qkv_width = ceil_div(c.qkv_width(), layout.tensor),
      .up_width = ceil_div(c.up_width(), layout.tensor),
      .ffn = ceil_div(c.ffn, layout.tensor),
      .vocabulary_rows = last ? ceil_div(c.padded_vocabulary, layout.tensor) : 0,
      .head_tokens_at_once = Head::tokens_at_once(request.device, tokens),
      .rope_elements = c.learned_positions ? 0 : c.max_positions * (c.head_dim / 2),
      .norm_has_mean = c.norm == ops::NormKind::layer_norm,
      .keeps_recomputable = c.recompute == Recompute::none,
      .keeps_blocks = c.recompute != Recompute::full,
      .hidden_dropout = c.hidden_dropout > 0.0,
      .update_tile_bytes = sizeof(ops::UpdateTile),
      .outside_bytes = on_cpu ? kProgramBytes + request.threads * kBytesPerThread : kGpuBytes,
  };
  const int64_t room = document_room(c, request.device, tokens);
  if (room > 0) inputs.document_bounds = room + 1;
  inputs.attention_scratch_elements = ops::attention_scratch(request.device,
                                                             {.dtype = c.compute,
                                                              .batch = request.batch,
                                                              .heads = inputs.heads,
                                                              .kv_heads = ceil_div(c.kv_heads, layout.tensor),
                                                              .query_length = length,
                                                              .key_length = length,
                                                              .head_dim = c.head_dim,
                                                              .documents = room},
                                                             request.threads);
  inputs.norm_scratch_elements = ops::norm_backward_scratch(inputs.norm_tokens, c.hidden);
  if (c.bias) {
    inputs.qkv_bias_scratch_elements = ops::column_sum_scratch(tokens, inputs.qkv_width);
    inputs.up_bias_scratch_elements = ops::column_sum_scratch(tokens, inputs.up_width);
    inputs.hidden_bias_scratch_elements = ops::column_sum_scratch(inputs.norm_tokens, c.hidden);
  }
  if (request.training) inputs.embedding_scratch_elements = ops::embedding_backward_scratch(request.device, tokens);
  const parallel::ParameterTable table = logical_parameters(c);
  for (const parallel::ParameterSpec& spec : table.specs()) {
    for (const int64_t holder : parallel::stages_of(spec, layout, c.layers, c.tied_embeddings)) {
      if (holder != stage) continue;
      const int64_t elements = parallel::local_shape(spec, layout.tensor).elements();
      inputs.parameter_elements.push_back(elements);
      inputs.update_tiles += ceil_div(ceil_div(elements, inputs.optimizer_shards), ops::kUpdateTile);
    }
  }
  return cost::memory_table(inputs);
}

WorstRank memory_of_worst_rank(const MemoryRequest& request) {
  WorstRank worst{.stage = 0, .table = memory_of_stage(request, 0)};
  for (int64_t stage = 1; stage < request.layout.pipeline; ++stage) {
    cost::MemoryTable table = memory_of_stage(request, stage);
    if (table.total() > worst.table.total()) worst = {stage, std::move(table)};
  }
  return worst;
}

}  // namespace megalith::model
