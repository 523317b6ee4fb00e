#pragma once

#include <optional>
#include <string_view>

namespace megalith::cost {

// Dense peaks as the maker states them, in TFLOPS (docs/design.md, section 6).
struct Accelerator {
  std::string_view name;
  double bf16_tflops;
  std::optional<double> fp8_tflops;
};

// By our name ("h200") or by the driver's ("NVIDIA H200"). nullptr for any other card, also for slower variants that
// share a name (PCIe, NVL): a wrong peak would make a wrong MFU.
const Accelerator* find_accelerator(std::string_view name);

}  // namespace megalith::cost
