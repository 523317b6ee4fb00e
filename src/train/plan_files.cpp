#include "train/plan_files.h"

#include "config/environment.h"
#include "core/device.h"
#include "data/tokenizer.h"
#include "ops/plans.h"
#include "train/describe.h"
#include "train/fit.h"
#include "train/layout.h"
#include "train/random_batch.h"

namespace megalith::train {

void check_device(const config::Run& run, const model::StageRequest& request) {
  if (request.device == Device::cpu) return;
  if (run.trainer.accelerator == "gpu") require_accelerator();
  const DeviceMemory memory = device_memory();
  require_fit(request, memory.total - memory.used);
}

void make_plans(Engine& engine, const config::Run& run, const std::filesystem::path& of_run,
                const std::string& of_checkpoint) {
  if (engine.stream().device() == Device::cpu) return;
  const bool is_chief = engine.place() == parallel::Coordinates{};
  const std::filesystem::path shared = is_chief ? config::plan_cache_file(run.trainer) : std::filesystem::path();
  if (!of_run.empty() && !of_checkpoint.empty() && !std::filesystem::exists(of_run))
    replace_file(of_run, of_checkpoint);
  if (!of_run.empty()) ops::load_plans(engine.stream(), of_run);
  if (!shared.empty()) ops::load_plans(engine.stream(), shared);
  ops::take_plans(engine.stream(), engine.tell_all(ops::plans_text(engine.stream())));
  data::MicroBatch example = random_step(engine.options(), 1, 0).micro_batches.front();
  if (run.model.data.reset_attention_mask) example.document_starts.assign(example.inputs.size(), 0);
  if (run.model.data.reset_position_ids) example.position_ids.assign(example.inputs.size(), 0);
  engine.make_plans(example);
  if (!of_run.empty()) ops::save_plans(engine.stream(), of_run);
  if (!shared.empty()) ops::save_plans(engine.stream(), shared);
}

ops::PlanCounts compile(const config::Run& run, comm::World* world) {
  const data::Vocabulary vocabulary = data::vocabulary_of(run.model.tokenizer);
  check_layout(run, vocabulary.size);
  check_device(run, stage_request(run, vocabulary.size));
  Engine engine(training_options(run, vocabulary.size), world);
  engine.initialise(static_cast<uint64_t>(run.model.seed));
  make_plans(engine, run, {});
  return ops::plan_counts(engine.stream());
}

}  // namespace megalith::train
