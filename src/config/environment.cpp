#include "config/environment.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "core/error.h"

namespace megalith::config {

namespace {
std::optional<int64_t> number_from(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const std::string_view digits(text);
  int64_t value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status != std::errc{} || end != digits.data() + digits.size() || value < 0) {
    user_error("the environment variable {} is '{}', which is no count", name, digits);
  }
  return value;
}

std::optional<Worker> array_task() {
  const auto id = number_from("SLURM_ARRAY_TASK_ID");
  const auto count = number_from("SLURM_ARRAY_TASK_COUNT");
  if (!id || !count) return std::nullopt;
  const int64_t first = number_from("SLURM_ARRAY_TASK_MIN").value_or(0);
  const int64_t step = number_from("SLURM_ARRAY_TASK_STEP").value_or(1);
  if (step == 0 || *id < first || (*id - first) % step != 0 || (*id - first) / step >= *count) {
    user_error("task {} does not fit into a Slurm array of {} tasks from {} in steps of {}; give --worker instead", *id,
               *count, first, step);
  }
  return Worker{(*id - first) / step, *count};
}

std::optional<Worker> step_task() {
  const auto rank = number_from("SLURM_PROCID");
  const auto tasks = number_from("SLURM_NTASKS");
  if (!rank || !tasks) return std::nullopt;
  const bool batch_script = std::getenv("SLURM_JOB_ID") != nullptr && std::getenv("SLURM_STEP_ID") == nullptr;
  if (batch_script) return Worker{};
  if (*rank >= *tasks) user_error("SLURM_PROCID {} is not below SLURM_NTASKS {}", *rank, *tasks);
  return Worker{*rank, *tasks};
}
}  // namespace

std::optional<Worker> worker_from_environment() {
  const auto array = array_task();
  const auto step = step_task();
  if (!array || !step) return array ? array : step;
  return Worker{array->index * step->count + step->index, array->count * step->count};
}

std::filesystem::path plan_cache_file(const Trainer& trainer) {
  if (trainer.plan_cache == "none") return {};
  if (!trainer.plan_cache.empty()) return trainer.plan_cache;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') return std::filesystem::path(cache) / "megalith/plans.json";
  if (home != nullptr && *home != '\0') return std::filesystem::path(home) / ".cache/megalith/plans.json";
  return {};
}

}  // namespace megalith::config
