#include <gtest/gtest.h>

#include <cstring>

#include "model/tiny_model.h"

namespace megalith::model {
namespace {

using testing::TinyModel;

ModelConfig wider(ModelConfig config, Scaling scaling) {
  config.hidden = 64;
  config.ffn = 128;
  config.head_dim = 16;
  config.layers = 4;
  config.init_std = 0.05;
  config.precision.scaling = scaling;
  config.precision.history = 4;
  return config;
}

std::vector<ModelConfig> models(Scaling scaling) {
  return {wider(testing::tiny_gpt(), scaling), wider(testing::tiny_llama(), scaling)};
}

// Gradients of the model once its scales are known, as a run's first step makes them.
std::unique_ptr<TinyModel> trained(const ModelConfig& config) {
  auto model = std::make_unique<TinyModel>(config, 2, 16);
  if (model->precision.has_slots()) {
    model->forward_backward();
    model->update_scales(ops::Remember::as_newest);
    model->forward_backward();
    model->update_scales(ops::Remember::in_place);
  }
  model->forward_backward();
  return model;
}

void expect_same_bits(const TinyModel& a, const TinyModel& b) {
  for (size_t i = 0; i < a.store.all().size(); ++i) {
    const Tensor& left = a.store.all()[i].gradient;
    const Tensor& right = b.store.all()[i].gradient;
    EXPECT_EQ(std::memcmp(left.data, right.data, static_cast<size_t>(left.bytes())), 0) << a.store.all()[i].spec->name;
  }
}

TEST(Fp8, RecomputeChangesNoBit) {
  for (const Scaling scaling : {Scaling::delayed, Scaling::current}) {
    for (ModelConfig config : models(scaling)) {
      config.precision.plain_at_end = 1;
      const auto kept = trained(config);
      config.recompute = Recompute::selective;
      expect_same_bits(*trained(config), *kept);
      config.recompute = Recompute::full;
      expect_same_bits(*trained(config), *kept);
      config.recompute_layers = 2;
      expect_same_bits(*trained(config), *kept);
    }
  }
}

TEST(Fp8, WeightsThatAreMadeWhereTheyAreNeededAreTheSame) {
  for (const Scaling scaling : {Scaling::delayed, Scaling::current}) {
    for (ModelConfig config : models(scaling)) {
      const auto kept = trained(config);
      int64_t peak = kept->fp8.peak();
      for (const int64_t copies : {1, 0}) {
        config.precision.weight_copies = copies;
        const auto made = trained(config);
        expect_same_bits(*made, *kept);
        EXPECT_LT(made->fp8.peak(), peak) << copies;
        peak = made->fp8.peak();
      }
    }
  }
}

TEST(Fp8, EvaluationLeavesNoTraceInTheSlots) {
  TinyModel model(models(Scaling::delayed).front(), 2, 16);
  model.evaluate(false);
  const Tensor& amax = model.precision.scales().amax;
  for (int64_t i = 0; i < amax.elements(); ++i) EXPECT_EQ(amax.as<int32_t>()[i], 0);
  model.evaluate(true);
  EXPECT_GT(amax.as<int32_t>()[0], 0);
}

TEST(Fp8, LayersAtTheEndsStayAsTheyAre) {
  ModelConfig config = models(Scaling::delayed).front();
  config.precision.plain_at_start = 1;
  config.precision.plain_at_end = 2;
  const TinyModel model(config, 2, 16);
  EXPECT_EQ(model.precision.linears().size(), 4u);
  EXPECT_FALSE(model.precision.of("layers.0.mlp.up").input.is_scaled());
  EXPECT_TRUE(model.precision.of("layers.1.mlp.up").input.is_scaled());
  EXPECT_EQ(model.precision.name_of_slot(8), "the output gradient of layers.1.mlp.up");
}

}  // namespace
}  // namespace megalith::model
