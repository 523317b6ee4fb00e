#include "plan/describe_layout.h"

#include <gtest/gtest.h>

#include "config/load.h"
#include "config/validate.h"
#include "expect_error.h"
#include "plan/run_request.h"
#include "repository.h"

namespace megalith::plan {
namespace {

config::Run recipe(const std::string& name, const std::vector<std::string>& overrides = {}) {
  const auto file = in_repository("recipes/" + name + ".yaml");
  config::Run run = config::load(std::vector{file}, overrides);
  config::validate(run);
  return run;
}

engine::StageRequest request_of(const config::Run& run) {
  return stage_request(run, run.model.tokenizer.vocab_size);
}

TEST(DescribeLayout, OfEveryRecipeOnSeveralStages) {
  struct Case {
    std::string recipe;
    std::vector<std::string> whole;
    int64_t rank;
    std::vector<std::string> of_rank;
  };
  const std::vector<Case> cases = {
      {"gpt3-175b",
       {"256 ranks: tensor 4 x pipeline 8 (2 chunks)", "optimizer in 8 shards", "256 per step",
        "2 chunks per stage; 1.3 %", "42-47, 90-95"},
       255,
       {"tensor 3 of 4", "data 7 of 8", "stage 7 of 8", "227, 231, 235", "31, 63, 95", "embedding      31, 255",
        "layers           42-47, 90-95"}},
      {"gpt3-175b-dgxc",
       {"128 ranks: tensor 4 x pipeline 8 (12 chunks)", "12 chunks per stage; 0.9 %",
        "7, 15, 23, 31, 39, 47, 55, 63, 71, 79, 87, 95"},
       17,
       {"tensor 1 of 4", "data 0 of 4", "stage 1 of 8", "layers           1, 9, 17"}},
      {"gpt3-175b-azure",
       {"128 ranks: tensor 8 x pipeline 16 x", "1F1B; 2.8 %", "120-127"},
       127,
       {"stage 15 of 16", "layers           90-95"}},
      {"gpt3-23b", {"128 ranks: tensor 8 x pipeline 4 x", "1F1B; 8.6 %", "21-27"}, 0, {"stage 0 of 4", "0-6"}},
      {"gpt3-46b", {"256 ranks: tensor 8 x pipeline 8 x", "1F1B; 9.9 %", "49-55"}, 32, {"stage 1 of 8", "7-13"}},
      {"gpt3-175b-neuron",
       {"256 ranks: tensor 32 x pipeline 8 x", "1F1B; 9.9 %", "84-95"},
       33,
       {"tensor 1 of 32", "32, 33, 34 ... 63 (32 ranks)", "12-23"}},
      {"llama3.1-405b",
       {"432 ranks: tensor 8 x pipeline 18 (7 chunks)", "7 chunks per stage; 1.7 %", "17, 35, 53, 71, 89, 107, 125"},
       37,
       {"tensor 5 of 8", "data 1 of 3", "stage 1 of 18", "29, 37, 45", "(18 ranks)", "1, 19, 37, 55, 73, 91, 109"}},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.recipe);
    const config::Run run = recipe(each.recipe);
    expect_parts(describe_model(run, run.model.tokenizer.vocab_size), each.whole);
    expect_parts(describe_rank(request_of(run), each.rank), each.of_rank);
  }
}

TEST(DescribeLayout, KeyAndValueHeadsThatSeveralRanksHold) {
  const config::Run run = recipe(
      "llama3.1-8b", {"trainer.num_nodes=2", "model.tensor_model_parallel_size=16", "model.context_parallel_size=1"});
  expect_parts(describe_rank(request_of(run), 5), {"tensor 5 of 16", "same kv heads  4, 5"});
}

TEST(DescribeLayout, KnowsWhichRanksThereAre) {
  const config::Run run = recipe("gpt3-23b");
  for (const int64_t rank : {int64_t{-1}, int64_t{128}}) {
    expect_parts(user_error_of([&] { describe_rank(request_of(run), rank); }), {"the run has 128"});
  }
}

}  // namespace
}  // namespace megalith::plan
