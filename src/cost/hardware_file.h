#pragma once

#include <filesystem>
#include <string>

#include "cost/hardware.h"

namespace megalith::cost {

// Adds or changes accelerators and networks as a YAML file says (docs/planning.md):
//
//   accelerators:
//     - {name: h100-pcie, like: h100, bf16_tflops: 756, memory_tb_s: 2.0}
//   networks:
//     - {name: ours, gbit_per_gpu: 200}
//
// A user error, with its place, for a key that there is none of or a number that cannot be.
void add_hardware(Hardware& hardware, const std::string& text, const std::string& file);
Hardware hardware_with(const std::filesystem::path& file);

}  // namespace megalith::cost
