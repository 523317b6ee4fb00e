#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/store.h"

namespace megalith::testing {

// Every byte of weights and optimizer state in a run's checkpoint of this step.
inline std::string final_state(const std::filesystem::path& run, int64_t step) {
  checkpoint::Loaded loaded = checkpoint::Store(run / "checkpoints").open(step);
  std::string bytes;
  for (const checkpoint::TensorInfo& info : loaded.manifest().tensors) {
    std::string tensor(static_cast<size_t>(info.shape.elements() * size_of(info.dtype)), '\0');
    loaded.load_tensor(info.kind, info.name, Tensor(tensor.data(), info.dtype, info.shape));
    bytes += info.name + tensor;
  }
  return bytes;
}

}  // namespace megalith::testing
