#include "plan/run_layout.h"
#include "core/words.h"

#include "config/batch_ramp.h"
#include "config/derived.h"
#include "plan/rehearsal.h"
#include "plan/run_request.h"

namespace megalith::plan {

parallel::Layout layout_of(const config::Run& run) {
  const config::Model& m = run.model;
  // Sharded weights come and go layer by layer.
  const int64_t chunks = m.fsdp ? m.num_layers : m.virtual_pipeline_model_parallel_size;
  const bool zero_bubble = m.pipeline_schedule == config::PipelineSchedule::zero_bubble;
  return {.tensor = m.tensor_model_parallel_size,
          .pipeline = m.pipeline_model_parallel_size,
          .chunks = chunks,
          .context = m.context_parallel_size,
          .data = config::data_parallel_size(run),
          .sequence_parallel = m.sequence_parallel,
          .shards_optimizer = m.wrap_with_zero,
          .shards_weights = m.fsdp,
          .split = {.first_stage = m.num_layers_in_first_pipeline_stage,
                    .last_stage = m.num_layers_in_last_pipeline_stage,
                    .counts_embedding = m.account_for_embedding_in_pipeline_split,
                    .counts_loss = m.account_for_loss_in_pipeline_split},
          .schedule = zero_bubble ? parallel::PipelineSchedule::zero_bubble
                                  : parallel::PipelineSchedule::one_forward_one_backward};
}

parallel::LayoutDemands demands_of(const config::Run& run, int64_t padded_vocabulary) {
  const config::Model& m = run.model;
  return {.ranks = config::world_size(run.trainer),
          .layers = m.num_layers,
          .heads = m.num_attention_heads,
          .kv_heads = m.num_query_groups,
          .ffn = m.ffn_hidden_size,
          .padded_vocabulary = padded_vocabulary,
          .length = m.encoder_seq_length,
          .micro_batch = m.micro_batch_size,
          .global_batch = m.global_batch_size};
}

int64_t bucket_elements_of(const config::Run& run) {
  return (run.model.optim.bucket_cap_mb << 20) / size_of(DType::f32);
}

namespace {
// Each stage of a batch that grows must be a step that the layout can take.
void check_ramp(const config::Run& run, parallel::LayoutDemands demands) {
  const std::vector<int64_t> batches = config::BatchRamp(run.model).batches();
  for (size_t stage = 0; stage < batches.size(); ++stage) {
    demands.global_batch = batches[stage];
    const std::vector<std::string> problems = parallel::layout_problems(layout_of(run), demands);
    if (!problems.empty())
      user_error("stage {} of the {} of model.rampup_batch_size cannot work: {}", stage + 1, batches.size(),
                 problems[0]);
  }
}
}  // namespace

void check_layout(const config::Run& run, int64_t vocabulary) {
  const int64_t padded = config::padded_vocab(vocabulary, run.model.make_vocab_size_divisible_by);
  const auto memory_of = [&](const parallel::Layout& layout) {
    engine::StageRequest request = stage_request(run, vocabulary);
    request.layout = layout;
    request.ramp_micro_batches.clear();
    request.micro_batches = run.model.global_batch_size / (run.model.micro_batch_size * layout.data);
    return fmt::format("{} on the largest rank", bytes_in_words(memory_of_worst_rank(request).table.total()));
  };
  try {
    parallel::check_layout(layout_of(run), demands_of(run, padded), memory_of);
    check_ramp(run, demands_of(run, padded));
  } catch (const Error& error) {
    user_error(
        "{}\n  ranks are trainer.devices x trainer.num_nodes; tensor, pipeline and context are model.*_parallel_size, "
        "chunks are model.virtual_pipeline_model_parallel_size, data is what is left",
        error.what());
  }
}

void check_ranks(const config::Run& run, int64_t started) {
  const int64_t wanted = config::world_size(run.trainer);
  if (wanted == started) return;
  const int64_t devices = run.trainer.devices;
  const std::string change = started % devices == 0 ? fmt::format("trainer.num_nodes={}", started / devices)
                                                    : fmt::format("trainer.devices={} trainer.num_nodes=1", started);
  user_error(
      "the config is for {} ranks (trainer.devices {} x trainer.num_nodes {}), and {} {} started: start {} (--nproc on "
      "one machine; torchrun, Slurm or Kubernetes on several), or set {}",
      wanted, devices, run.trainer.num_nodes, started, started == 1 ? "was" : "were", wanted, change);
}

config::Run on_one_rank(config::Run run) {
  const config::Model one;
  config::Model& m = run.model;
  run.trainer.devices = 1;
  run.trainer.num_nodes = 1;
  m.tensor_model_parallel_size = one.tensor_model_parallel_size;
  m.pipeline_model_parallel_size = one.pipeline_model_parallel_size;
  m.virtual_pipeline_model_parallel_size = one.virtual_pipeline_model_parallel_size;
  m.context_parallel_size = one.context_parallel_size;
  m.num_layers_in_first_pipeline_stage = one.num_layers_in_first_pipeline_stage;
  m.num_layers_in_last_pipeline_stage = one.num_layers_in_last_pipeline_stage;
  m.account_for_embedding_in_pipeline_split = one.account_for_embedding_in_pipeline_split;
  m.account_for_loss_in_pipeline_split = one.account_for_loss_in_pipeline_split;
  m.pipeline_schedule = one.pipeline_schedule;
  m.sequence_parallel = one.sequence_parallel;
  return run;
}

}  // namespace megalith::plan
