#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace megalith::checkpoint {

struct CheckpointBench {
  std::filesystem::path directory;  // where files are made and removed
  int64_t bytes = int64_t{2} << 30;
  int rounds = 4;
  Device device = Device::cpu;
};

// Bytes per second: of the machine itself, and of a checkpoint through the same device in the same round.
struct RatePair {
  std::string what;
  double raw = 0.0;
  double checkpoint = 0.0;
};

// Writes, reads and, where there is a GPU, copies from it, in turns: first as plainly as the machine can, then as a
// checkpoint with all its digests. All rounds together.
std::vector<RatePair> bench_checkpoint(const CheckpointBench& bench);

// A table for people.
std::string describe(const std::vector<RatePair>& rates);

}  // namespace megalith::checkpoint
