#include "model/memory_plan.h"

#include "model/head.h"
#include "model/parameters.h"
#include "model/recompute.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/norm.h"
#include "parallel/placement_bytes.h"
#include "parallel/replica_sync.h"

namespace megalith::model {

namespace {

// Resident before and beside the arenas, measured on the release build: code and heap of the program, and one packing
// buffer of OpenBLAS per thread.
constexpr int64_t kProgramBytes = int64_t{24} << 20;
constexpr int64_t kBytesPerThread = int64_t{16} << 20;
// CUDA context, cuBLAS and cuDNN handles.
constexpr int64_t kGpuBytes = int64_t{1} << 30;

std::vector<cost::MemoryInputs::Chunk> chunks_of(const StagePlan& plan) {
  std::vector<cost::MemoryInputs::Chunk> chunks;
  for (size_t i = 0; i < plan.parts.size(); ++i) {
    const std::vector<RecomputeGroup> groups = recompute_groups(plan.config, plan.parts[i].layers.size());
    const auto kept =
        std::count_if(groups.begin(), groups.end(), [](const RecomputeGroup& group) { return !group.is_recomputed; });
    chunks.push_back({.slots = plan.slots(i), .groups = std::ssize(groups), .kept_layers = kept});
  }
  return chunks;
}

void add_scratch(cost::MemoryInputs& inputs, const StageRequest& request, const StagePlan& plan) {
  const ModelConfig& c = plan.config;
  const bool shares_samples = inputs.context_ranks > 1;
  const int64_t documents = document_room(request, plan);
  if (documents > 0) inputs.document_bounds = documents + 1;
  inputs.attention_scratch_elements =
      ops::attention_scratch(request.device,
                             {.dtype = c.compute,
                              .batch = shares_samples ? 1 : plan.shape.batch,
                              .heads = c.heads,
                              .kv_heads = c.kv_heads,
                              .query_length = plan.shape.length,
                              .key_length = shares_samples ? request.length : plan.shape.length,
                              .head_dim = c.head_dim,
                              .documents = documents},
                             request.threads);
  inputs.norm_scratch_elements = ops::norm_backward_scratch(plan.shape.rows, c.hidden);
  if (c.bias) {
    inputs.qkv_bias_scratch_elements = ops::column_sum_scratch(plan.shape.tokens(), c.qkv_width());
    inputs.up_bias_scratch_elements = ops::column_sum_scratch(plan.shape.tokens(), c.up_width());
    inputs.hidden_bias_scratch_elements = ops::column_sum_scratch(plan.shape.rows, c.hidden);
  }
  if (!request.training) return;
  inputs.embedding_scratch_elements = ops::embedding_backward_scratch(request.device, plan.shape.tokens(), c.hidden);
  if (!orders_rows(request, plan)) return;
  inputs.orders_of_rows = c.learned_positions ? 2 : 1;
  inputs.order_scratch_elements = ops::row_order_scratch(request.device, plan.shape.tokens());
}

}  // namespace

int64_t document_room(const StageRequest& request, const StagePlan& plan) {
  const ModelConfig& c = plan.config;
  const bool has_use = c.masks_documents && c.attention_dropout == 0.0 && c.compute == DType::bf16 &&
                       request.device == Device::cuda && request.layout.context == 1;
  return has_use ? ops::document_room(plan.shape.tokens()) : 0;
}

bool orders_rows(const StageRequest& request, const StagePlan& plan) {
  return request.device == Device::cuda && request.training && plan.parts.front().has_embedding;
}

cost::MemoryTable memory_of_plan(const StageRequest& request, const StagePlan& plan,
                                 const parallel::Placement& placement, int64_t replica) {
  const ModelConfig& c = plan.config;
  const parallel::Layout& layout = request.layout;
  const bool on_cpu = request.device == Device::cpu;
  const bool has_head = plan.parts.back().has_head;
  const parallel::PlacementBytes bytes = bytes_of(placement, c.compute, replica);
  cost::MemoryInputs inputs{
      .compute = c.compute,
      .training = request.training,
      .weight_bytes = bytes.weights,
      .gradient_bytes = bytes.gradients,
      .remainder_bytes = bytes.remainders,
      .moment_bytes = bytes.moments,
      .update_table_bytes = bytes.update_table,
      .chunks = chunks_of(plan),
      .stream_buffers = plan.stream_buffers(),
      .batches = plan.batches(),
      .defers_products = layout.schedule == parallel::PipelineSchedule::zero_bubble,
      .batch = plan.shape.batch,
      .length = plan.shape.length,
      .rows = plan.shape.rows,
      .tensor_ranks = layout.tensor,
      .context_ranks = layout.context,
      .hidden = c.hidden,
      .heads = c.heads,
      .query_width = c.query_width(),
      .kv_width = c.kv_width(),
      .up_width = c.up_width(),
      .ffn = c.ffn,
      .has_embedding = plan.parts.front().has_embedding,
      .vocabulary_rows = has_head ? div_exact(c.padded_vocabulary, layout.tensor) : 0,
      .head_tokens_at_once = Head::tokens_at_once(request.device, plan.shape.tokens()),
      .rope_elements = c.learned_positions ? 0 : c.max_positions * (c.head_dim / 2),
      .norm_has_mean = c.norm == ops::NormKind::layer_norm,
      .keeps_recomputable = c.recompute != Recompute::selective,
      .hidden_dropout = c.hidden_dropout > 0.0,
      .outside_bytes = on_cpu ? kProgramBytes + request.threads * kBytesPerThread : kGpuBytes,
  };
  for (const ChunkPart& part : plan.parts) {
    inputs.layers += part.layers.size();
    inputs.recomputed_together = std::max(inputs.recomputed_together,
                                          largest_recomputed_group(recompute_groups(plan.config, part.layers.size())));
  }
  if (!request.training) inputs.defers_products = false;
  if (request.training) {
    inputs.reduction_bytes =
        parallel::ReplicaSync::scratch_bytes(placement, {.reduces_in_bf16 = request.reduces_in_bf16});
  }
  add_scratch(inputs, request, plan);
  return cost::memory_table(inputs);
}

namespace {

cost::MemoryTable memory_of(const StageRequest& request, const StagePlans& plans, const parallel::ParameterTable& table,
                            int64_t stage) {
  const parallel::Placement placement = place_parameters(request, table, stage, 0);
  return memory_of_plan(request, plans.of_stage(stage, placement.chunks_of_buckets()), placement, 0);
}

}  // namespace

cost::MemoryTable memory_of_stage(const StageRequest& request, int64_t stage) {
  return memory_of(request, StagePlans(request), logical_parameters(request.config), stage);
}

WorstRank memory_of_worst_rank(const StageRequest& request) {
  const StagePlans plans(request);
  const parallel::ParameterTable parameters = logical_parameters(request.config);
  WorstRank worst{.stage = 0, .table = memory_of(request, plans, parameters, 0)};
  for (int64_t stage = 1; stage < request.layout.pipeline; ++stage) {
    cost::MemoryTable table = memory_of(request, plans, parameters, stage);
    if (table.total() > worst.table.total()) worst = {stage, std::move(table)};
  }
  return worst;
}

}  // namespace megalith::model
