#include "model/precision.h"

#include <array>

#include "model/operands.h"
#include "model/parameters.h"
#include "ops/elementwise.h"

namespace megalith::model {

Precision::Precision(const ModelConfig& config, const parallel::ParameterStore& store,
                     const std::vector<int64_t>& layers, Arena& state, Arena& weights)
    : compute_(config.compute), recipe_(config.precision) {
  for (const int64_t layer : layers) {
    if (!config.is_scaled(layer)) continue;
    for (const std::string& name : linear_names(config, layer)) {
      index_.emplace(name, linears_.size());
      linears_.push_back(name);
    }
  }
  if (linears_.empty()) return;
  const int64_t slots = std::ssize(linears_) * kOperands;
  scales_.largest = state.allocate("fp8.largest", DType::f32, {slots});
  if (recipe_.scaling == Scaling::delayed) {
    scales_.amax = state.allocate("fp8.amax", DType::i32, {slots});
    scales_.scale = state.allocate("fp8.scale", DType::f32, {slots});
    constexpr auto kApart = ops::kInverseAlignment / int64_t{sizeof(float)};
    scales_.inverse = state.allocate("fp8.inverse", DType::f32, {slots, kApart}).slice_cols(0, 1);
    scales_.history = state.allocate("fp8.history", DType::f32, {slots, recipe_.history});
  }
  if (store.placement().shards_weights() || recipe_.weight_copies == 0) return;
  for (size_t i = 0; i < linears_.size(); ++i) {
    const Tensor& weight = store[linears_[i] + ".weight"].weight;
    kept_weights_.push_back(allocate_operand(weights, "fp8.weight", format_of(i, kWeight), weight.rows(), weight.cols(),
                                             recipe_.weight_copies == 2 ? Sides::both : Sides::rows));
  }
}

LinearFormat Precision::of(const std::string& linear) const {
  const auto found = index_.find(linear);
  if (found == index_.end()) {
    const OperandFormat plain{.dtype = compute_};
    return {.input = plain, .weight = plain, .gradient = plain};
  }
  const size_t i = found->second;
  return {.input = format_of(i, kInput),
          .weight = format_of(i, kWeight),
          .gradient = format_of(i, kGradient),
          .kept_weight = kept_weights_.empty() ? ops::Operand() : kept_weights_[i]};
}

OperandFormat Precision::format_of(size_t linear, Operands operand) const {
  const int64_t slot = static_cast<int64_t>(linear) * kOperands + operand;
  const Tensor largest(scales_.largest.as<float>() + slot, DType::f32, {1}, scales_.largest.device);
  return {.dtype = operand == kGradient ? recipe_.gradient : recipe_.forward,
          .scaling = recipe_.scaling,
          .slot = has_slots() ? scales_.slot(slot) : ops::Slot(),
          .largest = largest,
          .margin = recipe_.margin};
}

std::string Precision::name_of_slot(int64_t slot) const {
  constexpr std::array<const char*, kOperands> kNames = {"input", "weight", "output gradient"};
  return fmt::format("the {} of {}", kNames[static_cast<size_t>(slot % kOperands)],
                     linears_[static_cast<size_t>(slot / kOperands)]);
}

Tensor Precision::history_of(size_t linear) const {
  const int64_t first = static_cast<int64_t>(linear) * kOperands;
  return scales_.history.slice_rows(first, first + kOperands);
}

std::string Precision::terms() const {
  if (recipe_.scaling != Scaling::delayed) return "";
  return fmt::format("{}, {}, margin {}", megalith::name_of(recipe_.forward), megalith::name_of(recipe_.gradient),
                     recipe_.margin);
}

void Precision::reset(Stream& stream) const {
  if (linears_.empty()) return;
  const auto fill = [&](const Tensor& tensor, double value) { ops::fill(stream, {.x = tensor, .value = value}); };
  for (int64_t i = 0; i < scales_.largest.elements(); ++i) {
    const bool is_gradient = i % kOperands == kGradient;
    fill(scales_.largest.view({scales_.largest.elements(), 1}).slice_rows(i, i + 1),
         ops::largest_of(is_gradient ? recipe_.gradient : recipe_.forward));
  }
  if (!has_slots()) return;
  fill(scales_.scale, 1.0);
  fill(scales_.inverse, 1.0);
  fill(scales_.history, 0.0);
  forget_amax(stream);
}

void Precision::forget_amax(Stream& stream) const {
  if (!has_slots()) return;
  const Tensor& amax = scales_.amax;
  ops::fill(stream, {.x = Tensor(amax.data, DType::f32, amax.shape, amax.device), .value = 0.0});
}

}  // namespace megalith::model
