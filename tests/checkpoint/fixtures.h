#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "checkpoint/store.h"
#include "core/error.h"

namespace megalith::test {

// Some bytes of everything that a run saves, different for each step.
class ExampleRun {
 public:
  explicit ExampleRun(int64_t step) {
    for (size_t i = 0; i < weights_.size(); ++i)
      weights_[i].bits = static_cast<uint16_t>(i * 7 + static_cast<size_t>(step));
    for (size_t i = 0; i < master_.size(); ++i) master_[i] = static_cast<float>(i) * 0.5f - static_cast<float>(step);
    snapshot_.state = {.run_id = "run-1",
                       .step = step,
                       .consumed_samples = step * 8,
                       .data = {.horizon = 4000, .seed = 1234},
                       .config = "trainer:\n  max_steps: 100  # naïve\n",
                       .extra = {{"epoch", "0"}}};
    using checkpoint::TensorKind;
    snapshot_.tensors = {{"layers.0.mlp.weight", TensorKind::weights, Tensor(weights_.data(), DType::bf16, {6, 5})},
                         {"layers.0.mlp.weight", TensorKind::master, Tensor(master_.data(), DType::f32, {6, 5})},
                         {"layers.0.mlp.weight", TensorKind::exp_avg, Tensor(master_.data() + 3, DType::f32, {6, 5})},
                         {"layers.0.norm.bias", TensorKind::exp_avg_sq, Tensor(master_.data() + 7, DType::f32, {9})}};
  }
  ExampleRun(const ExampleRun&) = delete;
  ExampleRun& operator=(const ExampleRun&) = delete;

  const checkpoint::Snapshot& snapshot() const { return snapshot_; }

  // Loads everything and compares it with what was saved.
  bool equals(checkpoint::Loaded& loaded) const {
    bool equal = loaded.manifest().state == snapshot_.state;
    for (const checkpoint::NamedTensor& saved : snapshot_.tensors) {
      std::vector<std::byte> memory(static_cast<size_t>(saved.tensor.bytes()));
      loaded.load_tensor(saved.kind, saved.name, Tensor(memory.data(), saved.tensor.dtype, saved.tensor.shape));
      equal = equal && std::memcmp(memory.data(), saved.tensor.data, memory.size()) == 0;
    }
    return equal;
  }

 private:
  std::vector<bfloat16> weights_ = std::vector<bfloat16>(30);
  std::vector<float> master_ = std::vector<float>(40);
  checkpoint::Snapshot snapshot_;
};

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void overwrite(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace megalith::test
