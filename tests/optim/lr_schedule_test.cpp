#include "optim/lr_schedule.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "golden_data.h"

namespace megalith::optim {
namespace {

using enum config::LrSchedule;

config::Optim recipe(config::LrSchedule name) {
  return {.lr = 1e-3,
          .sched = {.name = name, .warmup_steps = 10, .constant_steps = 20, .min_lr = 1e-4, .max_steps = 100}};
}

TEST(LearningRate, WarmsUpLinearlyFromZero) {
  for (const config::LrSchedule name : {cosine, linear, wsd, constant}) {
    EXPECT_EQ(learning_rate(recipe(name), 0), 0.0);
    EXPECT_DOUBLE_EQ(learning_rate(recipe(name), 5), 5e-4);
    EXPECT_DOUBLE_EQ(learning_rate(recipe(name), 10), 1e-3);
  }
}

TEST(LearningRate, CosineReachesTheMinimumWhereTheConstantStepsBegin) {
  const config::Optim optim = recipe(cosine);
  EXPECT_NEAR(learning_rate(optim, 45), (1e-3 + 1e-4) / 2, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(optim, 80), 1e-4);
  EXPECT_DOUBLE_EQ(learning_rate(optim, 95), 1e-4);
  EXPECT_DOUBLE_EQ(learning_rate(optim, 1000), 1e-4);
}

TEST(LearningRate, LinearAndWsdDecayAlongALine) {
  EXPECT_NEAR(learning_rate(recipe(linear), 45), (1e-3 + 1e-4) / 2, 1e-12);
  config::Optim decays = recipe(wsd);
  decays.sched.decay_steps = 30;
  EXPECT_DOUBLE_EQ(learning_rate(decays, 50), 1e-3);
  EXPECT_NEAR(learning_rate(decays, 65), (1e-3 + 1e-4) / 2, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(decays, 80), 1e-4);
}

TEST(LearningRate, ConstantStays) {
  EXPECT_EQ(learning_rate(recipe(constant), 5000), 1e-3);
}

// A real NeMo run of GPT-3 175B: every learning rate that it logged, in fp32.
TEST(LearningRate, ReproducesTheGoldenDlloggerFile) {
  MEGALITH_GOLDEN_OR_SKIP(golden);
  std::ifstream file(golden / "dllogger" / "dllogger.json");
  ASSERT_TRUE(file.is_open());
  const config::Optim optim{.lr = 9e-5,
                            .sched = {.name = config::LrSchedule::cosine,
                                      .warmup_steps = 115,
                                      .constant_steps = 12500,
                                      .min_lr = 9e-6,
                                      .max_steps = 50}};
  int steps = 0;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json record = nlohmann::json::parse(line.substr(5));
    if (!record["step"].is_number()) continue;
    const auto logged = record["data"]["lr"].get<float>();
    EXPECT_EQ(static_cast<float>(learning_rate(optim, record["step"].get<int64_t>())), logged) << record["step"];
    ++steps;
  }
  EXPECT_EQ(steps, 50);
}

}  // namespace
}  // namespace megalith::optim
