#include <gtest/gtest.h>

#include <cmath>

#include "tiny_model.h"

namespace megalith::model::testing {
namespace {

// Every parameter's gradient of the whole model against central differences, in fp64.
void check_against_finite_differences(ModelConfig config) {
  config.compute = DType::f64;
  TinyModel model(config, 2, 6);
  model.forward_backward();
  const double h = 1e-5;
  for (const parallel::Parameter& parameter : model.store.all()) {
    auto* weight = parameter.weight.as<double>();
    const auto* gradient = parameter.gradient.as<double>();
    const int64_t elements = parameter.weight.elements();
    double difference = 0.0;
    double norm = 0.0;
    // A spread of elements, the first and the last among them.
    const int64_t stride = std::max<int64_t>(1, elements / 13);
    for (int64_t i = 0; i < elements; i += stride) {
      const double kept = weight[i];
      weight[i] = kept + h;
      const double above = model.evaluate(true);
      weight[i] = kept - h;
      const double below = model.evaluate(true);
      weight[i] = kept;
      const double expected = (above - below) / (2 * h);
      difference += std::pow(gradient[i] - expected, 2);
      norm += std::pow(expected, 2);
    }
    EXPECT_LT(std::sqrt(difference), 1e-6 * std::sqrt(norm) + 1e-10) << parameter.spec->name;
  }
}

TEST(Gradient, GptMatchesFiniteDifferences) {
  check_against_finite_differences(tiny_gpt());
}

TEST(Gradient, GptWithDropoutMatchesFiniteDifferences) {
  ModelConfig config = tiny_gpt();
  config.hidden_dropout = 0.1;
  config.attention_dropout = 0.2;
  check_against_finite_differences(config);
}

TEST(Gradient, LlamaMatchesFiniteDifferences) {
  check_against_finite_differences(tiny_llama());
}

}  // namespace
}  // namespace megalith::model::testing
