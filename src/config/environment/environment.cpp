#include "config/environment/environment.h"

#include <cstdlib>

#include "config/environment/variables.h"
#include "core/error.h"

namespace megalith::config {

namespace {
std::optional<Worker> array_task(const Variables& variables) {
  const auto id = variables.count("SLURM_ARRAY_TASK_ID");
  const auto count = variables.count("SLURM_ARRAY_TASK_COUNT");
  if (!id || !count) return std::nullopt;
  const int64_t first = variables.count("SLURM_ARRAY_TASK_MIN").value_or(0);
  const int64_t step = variables.count("SLURM_ARRAY_TASK_STEP").value_or(1);
  if (step == 0 || *id < first || (*id - first) % step != 0 || (*id - first) / step >= *count) {
    user_error("task {} does not fit into a Slurm array of {} tasks from {} in steps of {}; give --worker instead", *id,
               *count, first, step);
  }
  return Worker{(*id - first) / step, *count};
}

std::optional<Worker> step_task(const Variables& variables) {
  const auto rank = variables.count("SLURM_PROCID");
  const auto tasks = variables.count("SLURM_NTASKS");
  if (!rank || !tasks) return std::nullopt;
  if (variables.in_slurm_batch_script()) return Worker{};
  if (*rank >= *tasks) user_error("SLURM_PROCID {} is not below SLURM_NTASKS {}", *rank, *tasks);
  return Worker{*rank, *tasks};
}
}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  const char* text = std::getenv(name.c_str());
  if (text == nullptr) return std::nullopt;
  return text;
}

std::optional<Worker> worker_from_environment() {
  const Lookup lookup = process_environment;
  const Variables variables(lookup);
  const auto array = array_task(variables);
  const auto step = step_task(variables);
  if (!array || !step) return array ? array : step;
  return Worker{array->index * step->count + step->index, array->count * step->count};
}

std::filesystem::path tuning_cache_file(const Trainer& trainer) {
  if (trainer.plan_cache == "none") return {};
  if (!trainer.plan_cache.empty()) return trainer.plan_cache;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') return std::filesystem::path(cache) / "megalith/plans.json";
  if (home != nullptr && *home != '\0') return std::filesystem::path(home) / ".cache/megalith/plans.json";
  return {};
}

}  // namespace megalith::config
