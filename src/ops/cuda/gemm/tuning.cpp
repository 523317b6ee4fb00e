#include "ops/tuning.h"

#include <cublasLt.h>
#include <cudnn_version.h>

#include <nlohmann/json.hpp>

#include "core/device.h"
#include "core/file.h"
#include "ops/cuda/attention/cudnn_attention.h"
#include "ops/cuda/gemm/libraries.h"

namespace megalith::ops {

namespace {

using nlohmann::json;

// What was chosen on one machine means nothing on another.
std::string machine_key() {
  const Accelerator gpu = find_accelerators().at(0);
  return fmt::format("{}, driver {}, cuBLASLt {}", gpu.name, gpu.driver, cublasLtGetVersion());
}

json read_choices(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return json::object();
  const json choices = json::parse(read_text(file), nullptr, false);
  if (!choices.is_object()) {
    data_error("{} is not a file of tuned GPU choices; remove it, and they are made anew", file.string());
  }
  return choices;
}

}  // namespace

TuneByTiming::TuneByTiming(Stream& stream) : stream_(stream) {
  if (stream.device() == Device::cuda) cuda::libraries_of(stream).tuning = true;
}

TuneByTiming::~TuneByTiming() {
  if (stream_.device() == Device::cuda) cuda::libraries_of(stream_).tuning = false;
}

TuningCounts tuning_counts(Stream& stream) {
  if (stream.device() == Device::cpu) return {};
  cuda::Libraries& libraries = cuda::libraries_of(stream);
  return {.made = libraries.gemm_choices.made() + libraries.cudnn_attention->graphs_built(),
          .loaded = libraries.gemm_choices.loaded(),
          .failed = libraries.cudnn_attention->graphs_failed()};
}

void load_tuning(Stream& stream, const std::filesystem::path& file) {
  if (stream.device() == Device::cpu) return;
  const json choices = read_choices(file);
  const auto ours = choices.find(machine_key());
  if (ours == choices.end()) return;
  for (const auto& [problem, choice] : ours->items()) {
    if (!choice.is_string()) data_error("{}: the choice for '{}' is not a text", file.string(), problem);
    cuda::libraries_of(stream).gemm_choices.add_text(problem, choice.get<std::string>());
  }
}

std::string tuning_text(Stream& stream) {
  if (stream.device() == Device::cpu) return "";
  return json(cuda::libraries_of(stream).gemm_choices.to_texts()).dump();
}

void take_tuning(Stream& stream, const std::string& text) {
  if (text.empty()) return;
  const json choices = json::parse(text);
  for (const auto& [problem, choice] : choices.items()) {
    cuda::libraries_of(stream).gemm_choices.replace_by_text(problem, choice.get<std::string>());
  }
}

void save_tuning(Stream& stream, const std::filesystem::path& file) {
  if (stream.device() == Device::cpu) return;
  json choices = read_choices(file);
  json& ours = choices[machine_key()];
  for (const auto& [problem, choice] : cuda::libraries_of(stream).gemm_choices.to_texts()) ours[problem] = choice;
  make_directory(file.parent_path());
  replace_file(file, choices.dump(1) + "\n");
}

}  // namespace megalith::ops
