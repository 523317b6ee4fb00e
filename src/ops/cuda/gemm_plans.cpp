#include "ops/cuda/gemm_plans.h"

#include <charconv>
#include <cstring>

#include "core/error.h"

namespace megalith::ops::cuda {

namespace {

constexpr const char* kNotInOneCall = "apart";

std::string to_text(const GemmPlan& plan) {
  if (!plan.algorithm) return kNotInOneCall;
  std::string text;
  for (const uint64_t word : plan.algorithm->data) text += fmt::format("{:016x}", word);
  return text;
}

std::optional<GemmPlan> from_text(const std::string& text) {
  if (text == kNotInOneCall) return GemmPlan{};
  cublasLtMatmulAlgo_t algorithm{};
  constexpr size_t kDigits = 16;
  if (text.size() != kDigits * std::size(algorithm.data)) return std::nullopt;
  for (size_t i = 0; i < std::size(algorithm.data); ++i) {
    const char* begin = text.data() + i * kDigits;
    if (std::from_chars(begin, begin + kDigits, algorithm.data[i], 16).ptr != begin + kDigits) return std::nullopt;
  }
  return GemmPlan{.algorithm = algorithm};
}

}  // namespace

std::string to_string(const GemmProblem& p) {
  return fmt::format("{}{}{} {}x{}x{} {}{}{}{}{}{} strides {} {} {} {} {} align {}", name_of(p.operands),
                     p.result == p.operands ? "" : " to ", p.result == p.operands ? "" : name_of(p.result), p.m, p.n,
                     p.k, p.transpose_a ? 't' : 'n', p.transpose_b ? 't' : 'n', p.accumulates ? " accumulate" : "",
                     p.has_bias ? " bias" : "", p.has_addend ? " addend" : "", p.has_gelu ? " gelu" : "", p.stride_a,
                     p.stride_b, p.stride_c, p.stride_addend, p.stride_gelu_input, p.alignment);
}

const GemmPlan* GemmPlans::find(const GemmProblem& problem) {
  const auto known = plans_.find(problem);
  if (known != plans_.end()) return &known->second;
  const auto text = texts_.find(to_string(problem));
  if (text == texts_.end()) return nullptr;
  const std::optional<GemmPlan> plan = from_text(text->second);
  if (!plan) data_error("the plan of '{}' in the plan file is '{}', not one of ours", text->first, text->second);
  ++loaded_;
  return &plans_.emplace(problem, *plan).first->second;
}

const GemmPlan& GemmPlans::add(const GemmProblem& problem, const GemmPlan& plan) {
  ++made_;
  return plans_.emplace(problem, plan).first->second;
}

void GemmPlans::replace_by_text(const std::string& problem, const std::string& plan) {
  std::erase_if(plans_, [&](const auto& entry) { return to_string(entry.first) == problem; });
  texts_[problem] = plan;
}

std::map<std::string, std::string> GemmPlans::to_texts() const {
  std::map<std::string, std::string> texts = texts_;
  for (const auto& [problem, plan] : plans_) texts[to_string(problem)] = to_text(plan);
  return texts;
}

}  // namespace megalith::ops::cuda
