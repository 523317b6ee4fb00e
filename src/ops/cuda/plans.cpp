#include "ops/plans.h"

#include <cublasLt.h>
#include <cudnn_version.h>

#include <nlohmann/json.hpp>

#include "core/device.h"
#include "core/file.h"
#include "ops/cuda/cudnn_attention.h"
#include "ops/cuda/libraries.h"

namespace megalith::ops {

namespace {

using nlohmann::json;

// Plans of one machine mean nothing on another.
std::string machine_key() {
  const Accelerator gpu = find_accelerators().at(0);
  return fmt::format("{}, driver {}, cuBLASLt {}", gpu.name, gpu.driver, cublasLtGetVersion());
}

json read_plans(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return json::object();
  const json plans = json::parse(read_text(file), nullptr, false);
  if (!plans.is_object()) {
    data_error("{} is not a file of GPU plans; remove it, plans are then made anew", file.string());
  }
  return plans;
}

}  // namespace

PlanTuning::PlanTuning(Stream& stream) : stream_(stream) {
  if (stream.device() == Device::cuda) cuda::libraries_of(stream).tuning = true;
}

PlanTuning::~PlanTuning() {
  if (stream_.device() == Device::cuda) cuda::libraries_of(stream_).tuning = false;
}

PlanCounts plan_counts(Stream& stream) {
  if (stream.device() == Device::cpu) return {};
  cuda::Libraries& libraries = cuda::libraries_of(stream);
  return {.made = libraries.gemm_plans.made() + libraries.cudnn_attention->plans_built(),
          .loaded = libraries.gemm_plans.loaded(),
          .failed = libraries.cudnn_attention->plans_failed()};
}

void load_plans(Stream& stream, const std::filesystem::path& file) {
  if (stream.device() == Device::cpu) return;
  const json plans = read_plans(file);
  const auto ours = plans.find(machine_key());
  if (ours == plans.end()) return;
  for (const auto& [problem, plan] : ours->items()) {
    if (!plan.is_string()) data_error("{}: the plan of '{}' is not a text", file.string(), problem);
    cuda::libraries_of(stream).gemm_plans.add_text(problem, plan.get<std::string>());
  }
}

std::string plans_text(Stream& stream) {
  if (stream.device() == Device::cpu) return "";
  return json(cuda::libraries_of(stream).gemm_plans.to_texts()).dump();
}

void take_plans(Stream& stream, const std::string& text) {
  if (text.empty()) return;
  const json plans = json::parse(text);
  for (const auto& [problem, plan] : plans.items()) {
    cuda::libraries_of(stream).gemm_plans.replace_by_text(problem, plan.get<std::string>());
  }
}

void save_plans(Stream& stream, const std::filesystem::path& file) {
  if (stream.device() == Device::cpu) return;
  json plans = read_plans(file);
  json& ours = plans[machine_key()];
  for (const auto& [problem, plan] : cuda::libraries_of(stream).gemm_plans.to_texts()) ours[problem] = plan;
  make_directory(file.parent_path());
  replace_file(file, plans.dump(1) + "\n");
}

}  // namespace megalith::ops
