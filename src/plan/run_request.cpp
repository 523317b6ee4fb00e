#include "plan/run_request.h"

#include "config/batch_ramp.h"
#include "config/derived.h"
#include "core/device.h"
#include "core/thread_pool.h"
#include "plan/run_layout.h"

namespace megalith::plan {

Device device_of(const config::Trainer& trainer) {
  if (trainer.accelerator == config::Accelerator::gpu) return Device::cuda;
  return trainer.accelerator == config::Accelerator::automatic && !find_accelerators().empty() ? Device::cuda
                                                                                               : Device::cpu;
}

namespace {
std::vector<int64_t> ramp_micro_batches(const config::Run& run) {
  std::vector<int64_t> counts;
  for (const int64_t batch : config::BatchRamp(run.model).batches()) {
    if (batch < run.model.global_batch_size)
      counts.push_back(batch / (run.model.micro_batch_size * config::data_parallel_size(run)));
  }
  return counts;
}
}  // namespace

engine::StageRequest stage_request(const config::Run& run, int64_t vocabulary) {
  const config::Model& m = run.model;
  // The ranks of a machine share its cores.
  const int64_t cores_each = std::max<int64_t>(1, available_cores() / run.trainer.devices);
  const int threads = static_cast<int>(run.trainer.cpu_threads > 0 ? run.trainer.cpu_threads : cores_each);
  return {
      .config = model::make_model_config(run, vocabulary),
      .layout = layout_of(run),
      .batch = m.micro_batch_size,
      .length = m.encoder_seq_length,
      .micro_batches = config::micro_batches_per_step(run),
      .ramp_micro_batches = ramp_micro_batches(run),
      .device = device_of(run.trainer),
      .threads = threads,
      .bucket_elements = bucket_elements_of(run),
      .reduces_in_bf16 = run.model.optim.grad_sync_dtype == config::GradSync::bf16 && layout_of(run).replicas() > 1};
}

engine::EngineOptions training_options(const config::Run& run, int64_t vocabulary) {
  return {.stage = stage_request(run, vocabulary),
          .seed = static_cast<uint64_t>(run.model.seed),
          .deterministic = run.trainer.deterministic,
          .optimizer = {.optim = run.model.optim,
                        .clip_norm = run.trainer.gradient_clip_val,
                        .stop_at_non_finite = run.on_non_finite == config::OnNonFinite::stop},
          .deadline = run.trainer.communication_timeout};
}

}  // namespace megalith::plan
