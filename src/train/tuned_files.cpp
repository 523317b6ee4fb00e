#include "train/tuned_files.h"

#include "config/environment/environment.h"
#include "core/device.h"
#include "data/tokenizer/tokenizer.h"
#include "ops/tuning.h"
#include "plan/fit.h"
#include "plan/rehearsal.h"
#include "plan/run_layout.h"
#include "plan/run_request.h"
#include "train/bench/random_batch.h"
#include "train/run/run_files.h"

namespace megalith::train {

namespace {

void require_fp8() {
  const Accelerator gpu = find_accelerators().at(0);
  if (multiplies_fp8(gpu.architecture)) return;
  user_error(
      "model.fp8: the GPU ({}, {}) multiplies no fp8, which takes compute capability 8.9 or more; set model.fp8=false",
      gpu.name, gpu.architecture);
}

}  // namespace

void check_device(const config::Run& run, const engine::StageRequest& request, const Tiers& tiers) {
  if (request.device == Device::cpu) {
    const plan::RanksOnHost ranks{.ranks = run.trainer.devices, .saves = run.exp_manager.create_checkpoint_callback};
    std::optional<HostMemory> memory = host_memory();
    if (!memory) return;
    if (ranks.saves) memory->available += reusable_memory(tiers);
    return plan::require_fit(request, ranks, *memory);
  }
  if (run.trainer.accelerator == config::Accelerator::gpu) require_accelerator();
  if (run.model.fp8) require_fp8();
  const DeviceMemory memory = device_memory();
  plan::require_fit(request, memory.total - memory.used);
}

void tune(engine::Engine& engine, const config::Run& run, const std::filesystem::path& of_run,
          const std::string& of_checkpoint) {
  if (engine.stream().device() == Device::cpu) return;
  const bool is_chief = engine.place() == parallel::Coordinates{};
  const std::filesystem::path shared = is_chief ? config::tuning_cache_file(run.trainer) : std::filesystem::path();
  if (!of_run.empty() && !of_checkpoint.empty() && !std::filesystem::exists(of_run))
    replace_file(of_run, of_checkpoint);
  if (!of_run.empty()) ops::load_tuning(engine.stream(), of_run);
  if (!shared.empty()) ops::load_tuning(engine.stream(), shared);
  ops::take_tuning(engine.stream(), engine.talk().broadcast(ops::tuning_text(engine.stream())));
  data::MicroBatch example = random_step(engine.options(), 1, 0).micro_batches.front();
  if (run.model.data.reset_attention_mask) example.document_starts.assign(example.inputs.size(), 0);
  if (run.model.data.reset_position_ids) example.position_ids.assign(example.inputs.size(), 0);
  engine.tune(example);
  if (!of_run.empty()) ops::save_tuning(engine.stream(), of_run);
  if (!shared.empty()) ops::save_tuning(engine.stream(), shared);
}

ops::TuningCounts compile(const config::Run& run, comm::World& world) {
  require_tokenizer_files(run.model.tokenizer);
  const data::Vocabulary vocabulary = data::vocabulary_of(run.model.tokenizer);
  plan::check_layout(run, vocabulary.size);
  if (plan::device_of(run.trainer) == Device::cpu) return {};
  const engine::StageRequest request = plan::stage_request(run, vocabulary.size);
  check_device(run, request, tiers_of(run, world.rank()));
  engine::Engine engine(plan::training_options(run, vocabulary.size), world,
                        plan::memory_of_rank(request, world.rank()).arenas);
  engine.initialise(static_cast<uint64_t>(run.model.seed));
  tune(engine, run, {});
  return ops::tuning_counts(engine.stream());
}

}  // namespace megalith::train
