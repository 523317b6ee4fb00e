#include "plan/run_layout.h"

#include <gtest/gtest.h>

#include "config/load.h"
#include "config/validate.h"
#include "engine/stage_program.h"
#include "expect_error.h"

namespace megalith::plan {
namespace {

config::Run run_of(const std::vector<std::string>& overrides) {
  config::Run run = config::load(std::vector<config::Source>{}, overrides);
  config::validate(run);
  return run;
}

TEST(LayoutOfRun, SaysWhatTheConfigSays) {
  const parallel::Layout layout = layout_of(
      run_of({"trainer.devices=8", "trainer.num_nodes=4", "model.tensor_model_parallel_size=2",
              "model.pipeline_model_parallel_size=4", "model.virtual_pipeline_model_parallel_size=3",
              "model.context_parallel_size=2", "model.sequence_parallel=true", "model.wrap_with_zero=true",
              "model.account_for_embedding_in_pipeline_split=true", "model.account_for_loss_in_pipeline_split=true"}));
  EXPECT_EQ(layout, (parallel::Layout{.tensor = 2,
                                      .pipeline = 4,
                                      .chunks = 3,
                                      .context = 2,
                                      .data = 2,
                                      .sequence_parallel = true,
                                      .shards_optimizer = true,
                                      .split = {.counts_embedding = true, .counts_loss = true}}));
  const parallel::Layout uneven =
      layout_of(run_of({"model.pipeline_schedule=zero_bubble", "model.num_layers_in_first_pipeline_stage=2",
                        "model.num_layers_in_last_pipeline_stage=1"}));
  EXPECT_EQ(uneven.schedule, parallel::PipelineSchedule::zero_bubble);
  EXPECT_EQ(uneven.split, (parallel::LayerSplit{.first_stage = 2, .last_stage = 1}));
}

TEST(LayoutOfRun, WeightsLiveAsLongAsTheirShardingSays) {
  EXPECT_EQ(engine::weight_life(layout_of(run_of({"trainer.devices=2"}))), parallel::WeightLife::run);
  EXPECT_EQ(engine::weight_life(layout_of(run_of({"trainer.devices=2", "model.wrap_with_zero=true"}))),
            parallel::WeightLife::step);
  EXPECT_EQ(engine::weight_life(layout_of(run_of({"trainer.devices=2", "model.fsdp=true"}))),
            parallel::WeightLife::use);
  EXPECT_EQ(engine::weight_life(layout_of(run_of({"model.fsdp=true"}))), parallel::WeightLife::run)
      << "nobody to share with";
}

TEST(LayoutOfRun, BucketsAreMegabytesOfFp32) {
  EXPECT_EQ(bucket_elements_of(run_of({})), int64_t{40} << 20);
  EXPECT_EQ(bucket_elements_of(run_of({"model.optim.bucket_cap_mb=1"})), 262144);
}

TEST(CheckLayout, TakesWhatWorks) {
  constexpr int64_t kVocabulary = 50257;
  check_layout(run_of({}), kVocabulary);
  check_layout(
      run_of({"model.num_layers=126", "model.pipeline_model_parallel_size=18",
              "model.virtual_pipeline_model_parallel_size=7", "trainer.devices=18", "model.global_batch_size=18"}),
      kVocabulary);
  check_layout(
      run_of({"model.num_layers=14", "model.pipeline_model_parallel_size=4", "trainer.devices=4",
              "model.account_for_embedding_in_pipeline_split=true", "model.account_for_loss_in_pipeline_split=true"}),
      kVocabulary);
  check_layout(run_of({"model.num_attention_heads=16", "model.num_query_groups=2", "model.tensor_model_parallel_size=4",
                       "trainer.devices=4"}),
               kVocabulary);
}

TEST(CheckLayout, SaysWhatCannotWorkAndWhatCould) {
  struct Case {
    std::vector<std::string> overrides;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases = {
      {{"model.global_batch_size=3", "trainer.devices=4"}, {"global batch of 3", "data 4", "use 4"}},
      {{"model.tensor_model_parallel_size=5", "trainer.devices=5"},
       {"tensor 5", "12 attention heads", "model.*_parallel_size"}},
      {{"model.tensor_model_parallel_size=12", "trainer.devices=12"}, {"50048 rows of the padded vocabulary"}},
      {{"model.pipeline_model_parallel_size=5", "trainer.devices=5"}, {"12 layers", "5 equal chunks"}},
      {{"model.context_parallel_size=3", "trainer.devices=3"}, {"context 3", "multiple of 6"}},
      {{"model.tensor_model_parallel_size=2", "trainer.devices=3"},
       {"one copy of the model takes 2 ranks", "the run has 3", "use 2 or 4 ranks", "trainer.devices"}},
      {{"model.tensor_model_parallel_size=4"}, {"one copy of the model takes 4 ranks", "the run has 1"}},
      {{"model.pipeline_schedule=zero_bubble"}, {"zero-bubble", "more than one pipeline stage"}},
  };
  for (const Case& bad : cases) {
    SCOPED_TRACE(bad.overrides[0]);
    expect_parts(user_error_of([&] { check_layout(run_of(bad.overrides), 50000); }), bad.parts);
  }
}

TEST(CheckRanks, SaysBothNumbersAndWhatToChange) {
  const config::Run run = run_of({"trainer.devices=8", "trainer.num_nodes=2"});
  check_ranks(run, 16);
  expect_parts(user_error_of([&] { check_ranks(run, 8); }),
               {"16 ranks", "trainer.devices 8 x trainer.num_nodes 2", "8 were started", "trainer.num_nodes=1"});
  expect_parts(user_error_of([&] { check_ranks(run, 1); }),
               {"1 was started", "--nproc", "trainer.devices=1 trainer.num_nodes=1"});
}

TEST(OnOneRank, AnyLayoutBecomesOne) {
  const config::Run run = on_one_rank(
      run_of({"trainer.devices=8", "model.tensor_model_parallel_size=2", "model.pipeline_model_parallel_size=2",
              "model.num_layers=13", "model.num_layers_in_first_pipeline_stage=6"}));
  EXPECT_EQ(layout_of(run), parallel::Layout{});
  check_layout(run, 50257);
}

}  // namespace
}  // namespace megalith::plan
