#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace megalith::config {

// Keys whose value is one of a few words. Each enum has its list of words beside it: every way to write a value, the
// way in which it is printed first.

template <class E>
struct Word {
  std::string_view text;  // compared without case; empty: null
  E meaning;
};

enum class Accelerator { automatic, cpu, gpu };
constexpr auto words_of(Accelerator) {
  using enum Accelerator;
  return std::to_array<Word<Accelerator>>({{"auto", automatic}, {"cpu", cpu}, {"gpu", gpu}, {"cuda", gpu}});
}

enum class Precision { fp32, bf16 };
constexpr auto words_of(Precision) {
  using enum Precision;
  return std::to_array<Word<Precision>>(
      {{"32", fp32}, {"32-true", fp32}, {"fp32", fp32}, {"bf16", bf16}, {"bf16-mixed", bf16}, {"bf16-true", bf16}});
}

enum class Positions { learned_absolute, rope };
constexpr auto words_of(Positions) {
  using enum Positions;
  return std::to_array<Word<Positions>>({{"learned_absolute", learned_absolute}, {"rope", rope}});
}

enum class Normalization { layernorm, rmsnorm };
constexpr auto words_of(Normalization) {
  using enum Normalization;
  return std::to_array<Word<Normalization>>({{"layernorm", layernorm}, {"rmsnorm", rmsnorm}});
}

enum class Activation { gelu, swiglu };
constexpr auto words_of(Activation) {
  using enum Activation;
  return std::to_array<Word<Activation>>({{"gelu", gelu}, {"swiglu", swiglu}, {"fast-swiglu", swiglu}});
}

enum class Granularity { none, selective, full };
constexpr auto words_of(Granularity) {
  using enum Granularity;
  return std::to_array<Word<Granularity>>({{"", none}, {"none", none}, {"selective", selective}, {"full", full}});
}

enum class RecomputeMethod { none, uniform, block };
constexpr auto words_of(RecomputeMethod) {
  using enum RecomputeMethod;
  return std::to_array<Word<RecomputeMethod>>({{"", none}, {"none", none}, {"uniform", uniform}, {"block", block}});
}

enum class PipelineSchedule { one_f_one_b, zero_bubble };
constexpr auto words_of(PipelineSchedule) {
  using enum PipelineSchedule;
  return std::to_array<Word<PipelineSchedule>>(
      {{"1f1b", one_f_one_b}, {"zero_bubble", zero_bubble}, {"zb-h1", zero_bubble}});
}

enum class Fp8Recipe { delayed, tensorwise };
constexpr auto words_of(Fp8Recipe) {
  using enum Fp8Recipe;
  return std::to_array<Word<Fp8Recipe>>({{"delayed", delayed}, {"tensorwise", tensorwise}, {"current", tensorwise}});
}

enum class AmaxRule { max, most_recent };
constexpr auto words_of(AmaxRule) {
  using enum AmaxRule;
  return std::to_array<Word<AmaxRule>>({{"max", max}, {"most_recent", most_recent}});
}

enum class DataImpl { mmap, mock, automatic };
constexpr auto words_of(DataImpl) {
  using enum DataImpl;
  return std::to_array<Word<DataImpl>>({{"mmap", mmap}, {"mock", mock}, {"auto", automatic}});
}

enum class OptimizerName {
  adamw,
  adam,
  fused_adam,
  distributed_fused_adam,
  mcore_distributed_optim,
  megatron_fused_adam
};
constexpr auto words_of(OptimizerName) {
  using enum OptimizerName;
  return std::to_array<Word<OptimizerName>>({{"adamw", adamw},
                                             {"adam", adam},
                                             {"fused_adam", fused_adam},
                                             {"distributed_fused_adam", distributed_fused_adam},
                                             {"mcore_distributed_optim", mcore_distributed_optim},
                                             {"megatron_fused_adam", megatron_fused_adam}});
}

enum class GradSync { fp32, bf16 };
constexpr auto words_of(GradSync) {
  using enum GradSync;
  return std::to_array<Word<GradSync>>(
      {{"fp32", fp32}, {"32", fp32}, {"torch.float32", fp32}, {"bf16", bf16}, {"torch.bfloat16", bf16}});
}

enum class LrSchedule { cosine, linear, constant, wsd };
constexpr auto words_of(LrSchedule) {
  using enum LrSchedule;
  return std::to_array<Word<LrSchedule>>(
      {{"CosineAnnealing", cosine}, {"linear", linear}, {"constant", constant}, {"WSD", wsd}});
}

enum class LateSave { wait, skip };
constexpr auto words_of(LateSave) {
  using enum LateSave;
  return std::to_array<Word<LateSave>>({{"wait", wait}, {"skip", skip}});
}

enum class Best { min, max };
constexpr auto words_of(Best) {
  using enum Best;
  return std::to_array<Word<Best>>({{"min", min}, {"max", max}});
}

enum class OnNonFinite { stop, skip };
constexpr auto words_of(OnNonFinite) {
  using enum OnNonFinite;
  return std::to_array<Word<OnNonFinite>>({{"stop", stop}, {"skip", skip}});
}

template <class E>
constexpr std::string_view word_of(E value) {
  for (const Word<E>& word : words_of(E{})) {
    if (word.meaning == value) return word.text;
  }
  return "?";
}

}  // namespace megalith::config
