#include "train/describe.h"

#include "config/layout.h"
#include "core/device.h"
#include "core/thread_pool.h"
#include "cost/flops.h"
#include "model/parameters.h"
#include "train/describe_layout.h"
#include "train/layout.h"

namespace megalith::train {

Device device_of(const config::Trainer& trainer) {
  if (trainer.accelerator == "gpu") return Device::cuda;
  return trainer.accelerator == "auto" && !find_accelerators().empty() ? Device::cuda : Device::cpu;
}

model::StageRequest stage_request(const config::Run& run, int64_t vocabulary) {
  const config::Model& m = run.model;
  // The ranks of a machine share its cores.
  const int64_t cores_each = std::max<int64_t>(1, available_cores() / run.trainer.devices);
  const int threads = static_cast<int>(run.trainer.cpu_threads > 0 ? run.trainer.cpu_threads : cores_each);
  return {.config = model::make_model_config(run, vocabulary),
          .layout = layout_of(run),
          .batch = m.micro_batch_size,
          .length = m.encoder_seq_length,
          .micro_batches = config::micro_batches_per_step(run),
          .device = device_of(run.trainer),
          .threads = threads,
          .bucket_elements = bucket_elements_of(run),
          .reduces_in_bf16 = run.model.optim.grad_sync_dtype == "bf16" && layout_of(run).replicas() > 1};
}

EngineOptions training_options(const config::Run& run, int64_t vocabulary) {
  return {.stage = stage_request(run, vocabulary),
          .seed = static_cast<uint64_t>(run.model.seed),
          .deterministic = run.trainer.deterministic,
          .optimizer = {.optim = run.model.optim,
                        .clip_norm = run.trainer.gradient_clip_val,
                        .stop_at_non_finite = run.on_non_finite == "stop"},
          .deadline = run.trainer.communication_timeout};
}

std::string describe_model(const config::Run& run, int64_t vocabulary) {
  check_layout(run, vocabulary);
  const model::StageRequest request = stage_request(run, vocabulary);
  const int64_t padded = request.config.padded_vocabulary;
  std::string text = fmt::format("parameters       {} ({} with the vocabulary padded from {} to {})\n",
                                 with_commas(cost::parameter_count(run.model, vocabulary)),
                                 with_commas(model::logical_parameters(request.config).elements()), vocabulary, padded);
  text += fmt::format("FLOPs per sample {:.10e} (causal {:.10e})\n", cost::model_flops_per_sample(run.model, padded),
                      cost::causal_flops_per_sample(run.model, padded));
  const model::WorstRank worst = model::memory_of_worst_rank(request);
  if (request.layout.world() > 1) text += describe_layout(request);
  if (request.layout.pipeline > 1) text += fmt::format("largest rank     of stage {}\n", worst.stage);
  return text + worst.table.to_text();
}

}  // namespace megalith::train
