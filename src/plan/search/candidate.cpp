#include "plan/search/candidate.h"

#include "parallel/layer_split.h"
#include "plan/run_layout.h"

namespace megalith::plan {

namespace {

std::vector<int64_t> layers_of_stages(const parallel::Layout& layout, int64_t layers) {
  const std::vector<int64_t> chunks = parallel::layers_per_virtual_stage(layout, layers);
  std::vector<int64_t> stages(static_cast<size_t>(layout.pipeline));
  for (size_t i = 0; i < chunks.size(); ++i) stages[i % stages.size()] += chunks[i];
  return stages;
}

Recomputed recomputed(config::Granularity granularity) {
  if (granularity == config::Granularity::full) return Recomputed::full;
  return granularity == config::Granularity::selective ? Recomputed::selective : Recomputed::none;
}

}  // namespace

Candidate candidate_of(const config::Run& run) {
  Candidate candidate{.layout = layout_of(run),
                      .micro_batch = run.model.micro_batch_size,
                      .recompute = run.model.activations_checkpoint_granularity};
  candidate.layout.chunks = run.model.virtual_pipeline_model_parallel_size;
  return candidate;
}

config::Run with_candidate(config::Run run, const Cluster& cluster, const Candidate& candidate) {
  const parallel::Layout& layout = candidate.layout;
  config::Model& m = run.model;
  run.trainer.accelerator = config::Accelerator::gpu;
  run.trainer.devices = cluster.gpus_per_node();
  run.trainer.num_nodes = cluster.nodes();
  m.tensor_model_parallel_size = layout.tensor;
  m.pipeline_model_parallel_size = layout.pipeline;
  m.virtual_pipeline_model_parallel_size = layout.chunks;
  m.context_parallel_size = layout.context;
  m.sequence_parallel = layout.sequence_parallel;
  m.wrap_with_zero = layout.shards_optimizer || layout.shards_weights;
  m.fsdp = layout.shards_weights;
  m.num_layers_in_first_pipeline_stage = layout.split.first_stage;
  m.num_layers_in_last_pipeline_stage = layout.split.last_stage;
  m.account_for_embedding_in_pipeline_split = layout.split.counts_embedding;
  m.account_for_loss_in_pipeline_split = layout.split.counts_loss;
  m.pipeline_schedule = layout.schedule == parallel::PipelineSchedule::zero_bubble
                            ? config::PipelineSchedule::zero_bubble
                            : config::PipelineSchedule::one_f_one_b;
  m.micro_batch_size = candidate.micro_batch;
  m.activations_checkpoint_granularity = candidate.recompute;
  return run;
}

RunFeatures features_of(const config::Run& run, int64_t padded_vocabulary, const Cluster& cluster,
                        const Candidate& candidate) {
  const config::Model& m = run.model;
  const parallel::Layout& layout = candidate.layout;
  RunFeatures features{.model = {.layers = m.num_layers,
                                 .hidden = m.hidden_size,
                                 .heads = m.num_attention_heads,
                                 .kv_heads = m.num_query_groups,
                                 .head_dim = m.kv_channels,
                                 .ffn = m.ffn_hidden_size,
                                 .gated = m.activation == config::Activation::swiglu,
                                 .vocabulary = padded_vocabulary,
                                 .tied = m.share_embeddings_and_output_weights,
                                 .length = m.encoder_seq_length},
                       .gpu = cluster.gpu,
                       .network = cluster.network,
                       .wire = cluster.wire};
  features.gpus = cluster.gpus;
  features.gpus_per_node = cluster.gpus_per_node();
  features.fp8 = m.fp8;
  features.tensor = layout.tensor;
  features.sequence_parallel = layout.sequence_parallel;
  features.pipeline = layout.pipeline;
  features.chunks = layout.shards_weights ? 1 : layout.chunks;
  if (layout.pipeline > 1) features.stage_layers = layers_of_stages(layout, m.num_layers);
  features.context = layout.context;
  features.data = layout.data;
  features.sharding = layout.shards_weights     ? Sharding::fsdp
                      : layout.shards_optimizer ? Sharding::zero1
                                                : Sharding::none;
  features.shard_group = layout.data;
  features.micro_batch = candidate.micro_batch;
  features.global_batch = m.global_batch_size;
  features.recompute = recomputed(candidate.recompute);
  features.attention = AttentionKernel::cudnn;
  features.dropout = m.attention_dropout > 0 || m.hidden_dropout > 0;
  features.launch = KernelLaunch::graphs;
  features.gradient_bytes = m.optim.grad_sync_dtype == config::GradSync::bf16 ? 2 : 4;
  features.tensor_overlaps = false;
  features.data_overlaps = true;
  features.pipeline_overlaps = true;
  features.context_overlaps = false;
  features.python = false;
  return features;
}

}  // namespace megalith::plan
