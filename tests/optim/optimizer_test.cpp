#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

namespace megalith::optim {
namespace {

const parallel::ParameterTable& two_parameters() {
  static const parallel::ParameterTable table = [] {
    parallel::ParameterTable made;
    made.add({.name = "matrix", .shape = {2, 2}, .initial = parallel::Initial::ones, .weight_decay = true});
    made.add({.name = "bias", .shape = {2}, .initial = parallel::Initial::ones});
    return made;
  }();
  return table;
}

class OptimizerTest : public ::testing::Test {
 protected:
  OptimizerTest() : pool_(1), stream_(pool_), placement_(two_parameters()) {}

  void make(DType compute, double clip, bool stop_at_non_finite = false) {
    store_ = std::make_unique<parallel::ParameterStore>(
        parallel::StoreRequest{.placement = placement_, .compute = compute}, weights_, &gradients_);
    store_->initialise(stream_, 1);
    optimizer_ = std::make_unique<Optimizer>(
        OptimizerOptions{
            .optim = {.lr = 0.1, .weight_decay = 0.5}, .clip_norm = clip, .stop_at_non_finite = stop_at_non_finite},
        *store_, stream_, OptimizerArenas{masters_, moments_, table_});
    optimizer_->initialise(stream_);
  }

  void set_gradient(const char* name, float value) {
    const Tensor gradient = (*store_)[name].gradient;
    std::fill_n(gradient.as<float>(), gradient.elements(), value);
  }

  const ops::UpdateScalars& update(double learning_rate, int64_t count) {
    optimizer_->measure(stream_, learning_rate, count);
    optimizer_->apply(stream_);
    return *static_cast<const ops::UpdateScalars*>(optimizer_->scalars().data);
  }

  ThreadPool pool_;
  Stream stream_;
  parallel::Placement placement_;
  Arena weights_{"weights", Device::cpu, 4096}, gradients_{"gradients", Device::cpu, 4096},
      masters_{"masters", Device::cpu, 4096}, moments_{"moments", Device::cpu, 4096},
      table_{"table", Device::cpu, 4096};
  std::unique_ptr<parallel::ParameterStore> store_;
  std::unique_ptr<Optimizer> optimizer_;
};

// The first Adam step has the size of the learning rate; decay applies to the matrix alone.
TEST_F(OptimizerTest, FirstStepMovesByTheLearningRate) {
  make(DType::f32, 0.0);
  set_gradient("matrix", 0.3F);
  set_gradient("bias", -2.0F);
  const ops::UpdateScalars& result = update(0.1, 1);
  EXPECT_NEAR(result.gradient_norm, std::sqrt(4 * 0.09 + 2 * 4.0), 1e-6);
  EXPECT_NEAR((*store_)["matrix"].weight.as<float>()[0], 1.0 - 0.1 - 0.1 * 0.5, 1e-6);
  EXPECT_NEAR((*store_)["bias"].weight.as<float>()[1], 1.0 + 0.1, 1e-6);
}

TEST_F(OptimizerTest, ClippingScalesTheMoments) {
  make(DType::f32, 1.0);
  set_gradient("matrix", 3.0F);
  set_gradient("bias", 0.0F);
  const ops::UpdateScalars& result = update(0.1, 1);
  EXPECT_NEAR(result.gradient_norm, 6.0, 1e-6);
  EXPECT_NEAR(optimizer_->states()[0].exp_avg.as<float>()[0], 0.1 * 0.5, 1e-6);
}

TEST_F(OptimizerTest, ANonFiniteGradientChangesNothingAndIsNamed) {
  for (const float bad : {NAN, INFINITY}) {
    weights_.release_to(0);
    gradients_.release_to(0);
    moments_.release_to(0);
    table_.release_to(0);
    make(DType::f32, 1.0);
    set_gradient("matrix", 0.1F);
    set_gradient("bias", bad);
    const ops::UpdateScalars& result = update(0.1, 1);
    EXPECT_EQ(result.skip, 1);
    EXPECT_EQ(result.first_non_finite, 1);
    EXPECT_EQ((*store_)["matrix"].weight.as<float>()[0], 1.0F);
    EXPECT_EQ(optimizer_->states()[0].exp_avg.as<float>()[0], 0.0F);
  }
}

// The host hears of it a step later: by then nothing may have changed.
TEST_F(OptimizerTest, NothingChangesAfterANonFiniteGradientThatStopsTheRun) {
  for (const bool stops : {false, true}) {
    weights_.release_to(0);
    gradients_.release_to(0);
    moments_.release_to(0);
    table_.release_to(0);
    make(DType::f32, 1.0, stops);
    set_gradient("matrix", 0.1F);
    set_gradient("bias", NAN);
    update(0.1, 1);
    set_gradient("bias", 0.1F);
    EXPECT_EQ(update(0.1, 2).skip, stops ? 1 : 0);
    EXPECT_EQ((*store_)["bias"].weight.as<float>()[0] == 1.0F, stops);
  }
}

// Updates too small for bf16 are not lost: they add up in the master weight.
TEST_F(OptimizerTest, Bf16WeightsFollowTheirMasters) {
  make(DType::bf16, 0.0);
  set_gradient("matrix", 0.0F);
  set_gradient("bias", 1.0F);
  for (int64_t count = 1; count <= 8; ++count) update(1e-3, count);
  const bfloat16 weight = (*store_)["bias"].weight.as<bfloat16>()[0];
  const float master = join_float(weight, optimizer_->states()[1].remainder.as<int16_t>()[0]);
  EXPECT_NEAR(master, 1.0 - 8e-3, 1e-5);
  EXPECT_EQ(weight.bits, bfloat16(master).bits);
  EXPECT_NE(static_cast<float>(weight), 1.0F);
}

}  // namespace
}  // namespace megalith::optim
