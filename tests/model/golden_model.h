#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "checkpoint/format/safetensors.h"
#include "model/model_config.h"
#include "parallel/placement/parameter_table.h"
#include "repository.h"

namespace megalith::model::testing {

// Steps of kBatch samples of kLength tokens, of the tiny models.
constexpr int64_t kSteps = 10;
constexpr int64_t kBatch = 3;
constexpr int64_t kLength = 16;

// What PyTorch computed in fp64 (tests/golden/make_golden.py).
class Golden {
 public:
  explicit Golden(const std::string& name)
      : reader_(checkpoint::SafetensorsReader::open(in_repository("tests/golden/" + name))) {}

  std::vector<float> floats(const std::string& name, Shape shape) { return read<float>(name, DType::f32, shape); }
  std::vector<int32_t> tokens() { return read<int32_t>("tokens", DType::i32, {kSteps, kBatch, kLength + 1}); }

 private:
  template <class T>
  std::vector<T> read(const std::string& name, DType dtype, Shape shape) {
    std::vector<T> values(static_cast<size_t>(shape.elements()));
    reader_.read(name, Tensor(values.data(), dtype, shape));
    return values;
  }

  checkpoint::SafetensorsReader reader_;
};

// The golden models know nothing of vocabulary padding.
inline Shape unpadded(const ModelConfig& config, const parallel::ParameterSpec& spec) {
  if (spec.shape.rank() == 2 && spec.shape[0] == config.padded_vocabulary && spec.shape[1] == config.hidden &&
      (spec.name == "embedding.tokens.weight" || spec.name == "head.weight")) {
    return {config.vocabulary, config.hidden};
  }
  return spec.shape;
}

// Rows of q and v in a fused qkv bias: the K rows in between have a true gradient of zero.
inline void zero_k_bias(const ModelConfig& config, std::vector<float>& bias) {
  std::fill_n(bias.begin() + config.query_width(), config.kv_width(), 0.0F);
}

}  // namespace megalith::model::testing
