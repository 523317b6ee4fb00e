#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "checkpoint/safetensors.h"
#include "optim/optimizer.h"
#include "tiny_model.h"

namespace megalith::model::testing {
namespace {

constexpr int64_t kSteps = 10;
constexpr int64_t kBatch = 3;
constexpr int64_t kLength = 16;
constexpr double kTolerance = 1e-5;

// What PyTorch computed in fp64 (tests/golden/make_golden.py).
class Golden {
 public:
  explicit Golden(const std::string& name)
      : reader_(checkpoint::SafetensorsReader::open(std::string(MEGALITH_SOURCE_DIR) + "/tests/golden/" + name)) {}

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
Shape unpadded(const ModelConfig& config, const parallel::ParameterSpec& spec) {
  if (spec.shape.rank() == 2 && spec.shape[0] == config.padded_vocabulary && spec.shape[1] == config.hidden &&
      (spec.name == "embedding.tokens.weight" || spec.name == "head.weight")) {
    return {config.vocabulary, config.hidden};
  }
  return spec.shape;
}

void take_tokens(TinyModel& model, const std::vector<int32_t>& tokens, int64_t step) {
  for (int64_t b = 0; b < kBatch; ++b) {
    const int32_t* sample = tokens.data() + (step * kBatch + b) * (kLength + 1);
    for (int64_t t = 0; t < kLength; ++t) {
      model.ids[static_cast<size_t>(b * kLength + t)] = sample[t];
      model.target_ids[static_cast<size_t>(b * kLength + t)] = sample[t + 1];
    }
  }
}

// Rows of q and v in a fused qkv bias: the K rows in between have a true gradient of zero.
void zero_k_bias(const ModelConfig& config, std::vector<float>& bias) {
  std::fill_n(bias.begin() + config.query_width(), config.kv_width(), 0.0F);
}

void expect_close(const ModelConfig& config, const parallel::ParameterSpec& spec, const Tensor& actual,
                  std::vector<float> expected, const char* what) {
  std::vector<float> values(actual.as<float>(), actual.as<float>() + expected.size());
  if (spec.name.ends_with("qkv.bias")) {
    zero_k_bias(config, values);
    zero_k_bias(config, expected);
  }
  const Shape shape{static_cast<int64_t>(expected.size())};
  EXPECT_LT(relative_error(Tensor(values.data(), DType::f32, shape), Tensor(expected.data(), DType::f32, shape)),
            kTolerance)
      << what << " of " << spec.name;
}

void compare(const std::string& file, const ModelConfig& config) {
  Golden golden(file);
  TinyModel model(config, kBatch, kLength, 2);
  for (const parallel::Parameter& parameter : model.store.all()) {
    const std::vector<float> values =
        golden.floats("weights/" + parameter.spec->name, unpadded(config, *parameter.spec));
    std::copy(values.begin(), values.end(), parameter.weight.as<float>());
  }
  const std::vector<int32_t> tokens = golden.tokens();

  Arena masters("masters", Device::cpu, 0);
  Arena moments("moments", Device::cpu, model.table.bytes_of("moments"));
  optim::Optimizer optimizer({.lr = 1e-3, .weight_decay = 0.1, .betas = {0.9, 0.95}, .eps = 1e-8}, 1.0, model.store,
                             masters, moments);
  optimizer.initialise(model.stream);
  for (int64_t step = 0; step < kSteps; ++step) {
    take_tokens(model, tokens, step);
    const double loss = model.forward_backward();
    if (step == 0) {
      EXPECT_NEAR(loss, golden.floats("loss", {1})[0], 1e-5 * loss);
      for (const parallel::Parameter& parameter : model.store.all()) {
        expect_close(config, *parameter.spec, parameter.gradient,
                     golden.floats("gradients/" + parameter.spec->name, unpadded(config, *parameter.spec)), "gradient");
      }
    }
    optimizer.update(model.stream, 1e-3, step + 1);
  }
  for (const parallel::Parameter& parameter : model.store.all()) {
    expect_close(config, *parameter.spec, parameter.weight,
                 golden.floats("updated/" + parameter.spec->name, unpadded(config, *parameter.spec)),
                 "weight after 10 steps");
  }
}

TEST(Golden, GptAgreesWithPyTorch) {
  compare("gpt.safetensors", tiny_gpt());
}
TEST(Golden, LlamaAgreesWithPyTorch) {
  compare("llama.safetensors", tiny_llama());
}

}  // namespace
}  // namespace megalith::model::testing
