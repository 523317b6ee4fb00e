#include "ops/cuda/gemm/gemm_choices.h"

#include <charconv>
#include <cstring>

#include "core/error.h"

namespace megalith::ops::cuda {

namespace {

constexpr const char* kNotInOneCall = "apart";

std::string to_text(const GemmChoice& choice) {
  if (!choice.algorithm) return kNotInOneCall;
  std::string text;
  for (const uint64_t word : choice.algorithm->data) text += fmt::format("{:016x}", word);
  return text;
}

std::optional<GemmChoice> from_text(const std::string& text) {
  if (text == kNotInOneCall) return GemmChoice{};
  cublasLtMatmulAlgo_t algorithm{};
  constexpr size_t kDigits = 16;
  if (text.size() != kDigits * std::size(algorithm.data)) return std::nullopt;
  for (size_t i = 0; i < std::size(algorithm.data); ++i) {
    const char* begin = text.data() + i * kDigits;
    if (std::from_chars(begin, begin + kDigits, algorithm.data[i], 16).ptr != begin + kDigits) return std::nullopt;
  }
  return GemmChoice{.algorithm = algorithm};
}

}  // namespace

std::string to_string(const GemmProblem& p) {
  std::string types(name_of(p.a));
  if (p.b != p.a) types += fmt::format("*{}", name_of(p.b));
  if (p.result != p.a) types += fmt::format(" to {}", name_of(p.result));
  return fmt::format("{} {}x{}x{} {}{}{}{}{}{}{} strides {} {} {} {} {} align {}", types, p.m, p.n, p.k,
                     p.transpose_a ? 't' : 'n', p.transpose_b ? 't' : 'n', p.accumulates ? " accumulate" : "",
                     p.has_bias ? " bias" : "", p.has_addend ? " addend" : "", p.has_gelu ? " gelu" : "",
                     p.fast_accumulation ? " fast" : "", p.stride_a, p.stride_b, p.stride_c, p.stride_addend,
                     p.stride_gelu_input, p.alignment);
}

const GemmChoice* GemmChoices::find(const GemmProblem& problem) {
  const auto known = choices_.find(problem);
  if (known != choices_.end()) return &known->second;
  const auto text = texts_.find(to_string(problem));
  if (text == texts_.end()) return nullptr;
  const std::optional<GemmChoice> choice = from_text(text->second);
  if (!choice)
    data_error("the choice for '{}' in the file of tuned choices is '{}', not one of ours", text->first, text->second);
  ++loaded_;
  return &choices_.emplace(problem, *choice).first->second;
}

const GemmChoice& GemmChoices::add(const GemmProblem& problem, const GemmChoice& choice) {
  ++made_;
  return choices_.emplace(problem, choice).first->second;
}

void GemmChoices::replace_by_text(const std::string& problem, const std::string& choice) {
  std::erase_if(choices_, [&](const auto& entry) { return to_string(entry.first) == problem; });
  texts_[problem] = choice;
}

std::map<std::string, std::string> GemmChoices::to_texts() const {
  std::map<std::string, std::string> texts = texts_;
  for (const auto& [problem, choice] : choices_) texts[to_string(problem)] = to_text(choice);
  return texts;
}

}  // namespace megalith::ops::cuda
