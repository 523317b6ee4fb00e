#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace megalith::observe {

// The tables of Google's training_metrics tool, kept as they are so that its numbers come out again. They differ from
// Megalith's own (cost/hardware.h, cost/flops.h) in places: fp8 of an H100 is 1978 there, 1979 with its maker.

struct GoogleModel {
  std::string_view name;
  double flops_per_sample;  // forward and backward
};
std::span<const GoogleModel> google_models();

struct GoogleAccelerator {
  std::string_view name;
  double bf16_tflops;
  std::optional<double> fp8_tflops;
};
std::span<const GoogleAccelerator> google_accelerators();

}  // namespace megalith::observe
