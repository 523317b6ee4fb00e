#include "train/bench/op_profile.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "expect_error.h"
#include "ops/elementwise.h"
#include "plan/rates/rates.h"

namespace megalith::train {
namespace {

class OpProfile : public ::testing::Test {
 protected:
  static Tensor tensor(std::vector<float>& values) {
    return Tensor(values.data(), DType::f32, {static_cast<int64_t>(values.size())});
  }

  ThreadPool pool_{1};
  Stream stream_{pool_};
  std::vector<float> small_ = std::vector<float>(10);
  std::vector<float> other_small_ = std::vector<float>(10);
  std::vector<float> large_ = std::vector<float>(1000);
};

TEST_F(OpProfile, CountsCallsOfEachShape) {
  const std::vector<OpLine> lines = profile_ops(stream_, [&] {
    ops::fill(stream_, {.x = tensor(small_), .value = 1.0});
    ops::fill(stream_, {.x = tensor(large_), .value = 2.0});
    ops::fill(stream_, {.x = tensor(other_small_), .value = 3.0});
  });
  ASSERT_EQ(lines.size(), 2u);
  for (const OpLine& line : lines) {
    const bool is_large = line.cost.bytes == 4000.0;
    EXPECT_EQ(line.name, "fill");
    EXPECT_EQ(line.calls, is_large ? 1 : 2);
    EXPECT_EQ(line.cost.bytes, is_large ? 4000.0 : 40.0);
    EXPECT_GT(line.seconds, 0.0);
  }
}

TEST_F(OpProfile, TheFloorIsThatOfTheRehearsedStep) {
  using ops::OpKind;
  const std::vector<OpLine> lines = {
      {.name = "gemm", .cost = {.kind = OpKind::product, .bytes = 100.0, .shape = "a"}, .calls = 9, .seconds = 0.5},
      {.name = "gemm", .cost = {.kind = OpKind::product, .bytes = 100.0, .shape = "b"}, .calls = 9, .seconds = 0.25},
      {.name = "fill", .cost = {.kind = OpKind::memory, .bytes = 20.0, .shape = "a"}, .calls = 9, .seconds = 7.0}};
  plan::StepWork work{.operations = {{.name = "gemm", .cost = lines[0].cost, .calls = 2},
                                     {.name = "gemm", .cost = lines[1].cost, .calls = 1},
                                     {.name = "fill", .cost = lines[2].cost, .calls = 3}}};
  EXPECT_EQ(floor_seconds(work, lines, 10.0), 2 * 0.5 + 0.25 + 3 * 2.0);
  work.operations.push_back({.name = "gemm", .cost = {.kind = OpKind::product, .shape = "c"}, .calls = 1});
  expect_error(ErrorKind::internal, {"gemm c is rehearsed"}, [&] { floor_seconds(work, lines, 10.0); });
}

TEST_F(OpProfile, ThePlannerReadsWhatWasMeasured) {
  const std::string shape = "bf16 4 x 2048 queries, 2048 keys";
  const std::vector<OpLine> lines = {
      {.name = "attention_forward", .cost = {.bytes = 100.0, .shape = shape}, .calls = 9, .seconds = 5e-4}};
  plan::Rates rates;
  rates.add(to_csv(lines, 1e12, {.device = "NVIDIA H200", .driver = "13.0", .program = "megalith 1 (a)"}), "rates.csv");
  EXPECT_NEAR(rates.time_of("attention_forward", {.bytes = 100.0, .shape = shape}).seconds, 5e-4, 1e-9);
  EXPECT_EQ(rates.origin(), (plan::RatesOrigin{"NVIDIA H200", "13.0", "megalith 1 (a)"}));
}

TEST_F(OpProfile, CallsThatAreAlikeTakeTurns) {
  profile_ops(stream_, [&] {
    ops::fill(stream_, {.x = tensor(small_), .value = 1.0});
    ops::fill(stream_, {.x = tensor(other_small_), .value = 3.0});
    std::fill(small_.begin(), small_.end(), 0.0F);
    std::fill(other_small_.begin(), other_small_.end(), 0.0F);
  });
  EXPECT_EQ(small_.front(), 1.0F);
  EXPECT_EQ(other_small_.front(), 3.0F);
}

}  // namespace
}  // namespace megalith::train
