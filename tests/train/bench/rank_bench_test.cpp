#include "train/bench/rank_bench.h"

#include <gtest/gtest.h>

#include "data/tokenizer/tokenizer.h"
#include "expect_error.h"
#include "plan/rates/operation_times.h"
#include "plan/run_request.h"
#include "plan/search/candidate.h"
#include "plan/wire.h"
#include "temp_dir.h"
#include "train/tiny_run.h"

namespace megalith::train {
namespace {

using testing::kTinyGpt;
using testing::tiny_run;

const parallel::Layout kLayout{.tensor = 4, .pipeline = 8, .data = 4};

TEST(RanksNamed, AreFirstRanksOfStagesOrNumbers) {
  EXPECT_EQ(ranks_named(kLayout, "first,middle,last"), (std::vector<int>{0, 64, 112}));
  EXPECT_EQ(ranks_named(kLayout, "127,3,127"), (std::vector<int>{127, 3}));
  EXPECT_EQ(ranks_named(kLayout, "last,112"), (std::vector<int>{112}));
  EXPECT_EQ(ranks_named({.data = 2}, "first,middle,last"), (std::vector<int>{0}));
}

TEST(RanksNamed, RefuseWhatTheLayoutHasNot) {
  for (const std::string names : {"128", "-1", "", "2,", "end", "1.5", "first last"}) {
    expect_error(ErrorKind::user, {"--as-rank", "ranks 0 to 127", "first, middle, last"},
                 [&] { ranks_named(kLayout, names); });
  }
}

TEST(MessageScale, GradientsComeFromTheStageBehind) {
  const auto scale = [](std::vector<int> ranks, int member, int peer) {
    return message_scale({.name = "pipeline", .ranks = std::move(ranks), .member = member}, peer, 2000);
  };
  EXPECT_EQ(scale({0, 1, 2, 3}, 1, 0), 1.0);
  EXPECT_EQ(scale({0, 1, 2, 3}, 1, 2), 1e-5);
  EXPECT_EQ(scale({0, 1, 2, 3}, 3, 0), 1e-5);  // interleaved
  EXPECT_EQ(scale({0, 1, 2, 3}, 0, 3), 1.0);
  EXPECT_EQ(scale({0, 1}, 0, 1), 1e-5);
  EXPECT_EQ(scale({0, 1}, 1, 0), 1.0);
}

plan::MeasuredStage stage_of(int64_t stage, double pass, double end) {
  return {.stage = stage, .chunks = {{.forward = pass, .backward = 2 * pass}}, .end = end};
}

TEST(SharesOf, APartIsWhatTheStepLacksWithoutIt) {
  const engine::StageRequest request{.config = {.layers = 4, .hidden = 8},
                                     .layout = {.tensor = 2, .pipeline = 4, .data = 2},
                                     .batch = 1,
                                     .length = 8,
                                     .micro_batches = 8};
  const comm::Wire wire{.name = "still",
                        .links = {comm::Link{.bytes_per_second = 1e24}, comm::Link{.bytes_per_second = 1e24}}};
  std::vector<MeasuredRank> ranks;
  for (const int64_t stage : {0, 3}) {
    ranks.push_back({.times = stage_of(stage, 1.0, 6.0),
                     .without = {{"tensor", stage_of(stage, 0.75, 6.0)}, {"data", stage_of(stage, 1.0, 2.0)}}});
  }
  const StepShares shares = shares_of(request, wire, ranks);
  EXPECT_NEAR(shares.total(), 11 * 3.0 + 6.0, 1e-9);
  EXPECT_NEAR(shares.tensor, 11 * 0.75, 1e-9);
  EXPECT_EQ(shares.context, 0.0);
  EXPECT_NEAR(shares.data, 4.0, 1e-9);
  EXPECT_NEAR(shares.update, 2.0, 1e-9);
  EXPECT_NEAR(shares.idle, 3 * 3.0, 1e-9);
  EXPECT_NEAR(shares.compute, 33.0 - 8.25 - 9.0, 1e-9);
}

class RankBench : public ::testing::Test {
 protected:
  config::Run run_of(std::vector<std::string> overrides) {
    overrides.insert(overrides.begin(), {"trainer.devices=8", "model.global_batch_size=32", "model.num_layers=4"});
    return tiny_run(kTinyGpt, dir_ / "run", overrides);
  }

  MeasuredRank measure(const config::Run& run, int rank, bool profile = false) {
    const engine::EngineOptions options = plan::training_options(run, data::vocabulary_of(run.model.tokenizer).size);
    comm::WireClock clock;
    comm::EmulatedWorld world(rank, 8, {.wire = plan::find_wire("h100", {})}, clock);
    return measure_rank(run, options, world, {.steps = 2, .profile = profile});
  }

  ::megalith::testing::TempDir dir_;
};

// Below the verb the CPU has no wire beside it, but everything else is as on a GPU.
TEST_F(RankBench, MeasuresEveryChunkOfARank) {
  const config::Run run = run_of({"model.tensor_model_parallel_size=2", "model.sequence_parallel=true",
                                  "model.pipeline_model_parallel_size=2",
                                  "model.virtual_pipeline_model_parallel_size=2", "model.wrap_with_zero=true"});
  for (const int rank : {0, 3, 7}) {
    const MeasuredRank measured = measure(run, rank);
    EXPECT_EQ(measured.rank, rank);
    EXPECT_EQ(measured.times.stage, rank / 4);
    ASSERT_EQ(measured.times.chunks.size(), 2U);
    double passes = 0.0;
    for (const plan::MeasuredStage::Chunk& chunk : measured.times.chunks) {
      EXPECT_GT(chunk.forward, 0.0);
      EXPECT_GT(chunk.backward, 0.0);
      EXPECT_EQ(chunk.backward_weight, 0.0);
      passes += chunk.forward + chunk.backward;
    }
    EXPECT_GT(measured.times.begin, 0.0);
    EXPECT_GT(measured.times.end, 0.0);
    EXPECT_EQ(measured.without.size(), 2U);
    EXPECT_TRUE(measured.without.contains("tensor"));
    EXPECT_TRUE(measured.without.contains("data"));
    // Three micro batches for each stage, but a step has only four.
    EXPECT_GT(measured.simulated_seconds, 4 * passes);
    EXPECT_GT(measured.step_seconds, 4 * passes / 2);
    EXPECT_GT(measured.planned_bytes, 0);
  }
}

TEST_F(RankBench, HalvesOfBackwardAreMeasuredApart) {
  const config::Run run = run_of(
      {"model.pipeline_model_parallel_size=4", "model.pipeline_schedule=zero_bubble", "model.context_parallel_size=2"});
  const MeasuredRank measured = measure(run, 3);
  ASSERT_EQ(measured.times.chunks.size(), 1U);
  EXPECT_EQ(measured.times.chunks[0].backward, 0.0);
  EXPECT_GT(measured.times.chunks[0].backward_input, 0.0);
  EXPECT_GT(measured.times.chunks[0].backward_weight, 0.0);
  EXPECT_TRUE(measured.without.contains("context"));
}

// What `bench step --as-rank --csv` writes is what `plan --rates` reads: shapes of a tensor and context rank among
// them.
TEST_F(RankBench, ThePlannerFindsEveryOperationOfARank) {
  const config::Run run = run_of({"model.tensor_model_parallel_size=2", "model.sequence_parallel=true",
                                  "model.pipeline_model_parallel_size=2", "model.context_parallel_size=2"});
  RankBenchResult result;
  for (const int rank : {0, 4}) result.ranks.push_back(measure(run, rank, true));
  EXPECT_GT(result.copy_bytes_per_second(), 0.0);
  plan::Rates rates;
  rates.add(to_csv(result.operations(), result.copy_bytes_per_second(), {"GPU", "1.0", "0.1"}), "ranks.csv");
  EXPECT_EQ(rates.origin(), (plan::RatesOrigin{"GPU", "1.0", "0.1"}));
  const cost::Hardware hardware;
  const cost::Accelerator& h100 = hardware.accelerator("h100");
  const plan::Cluster cluster{.gpu = h100, .network = hardware.network(h100.network), .gpus = 8};
  const int64_t vocabulary = data::vocabulary_of(run.model.tokenizer).size;
  const engine::StageRequest request = plan::stage_request(run, vocabulary);
  const plan::RunFeatures features =
      plan::features_of(run, request.config.padded_vocabulary, cluster, plan::candidate_of(run));
  const plan::Constants constants = plan::fitted_constants();
  const plan::OwnTimes times =
      plan::own_times(request, features, {.rates = rates, .measured_on = h100, .constants = constants});
  // All but what fills the gradients of a whole stage, which are not those of two layers.
  EXPECT_EQ(times.operations.assumed, 0.0);
  EXPECT_GT(times.operations.measured, 0.99 * times.operations.all());
}

TEST(RankBenchResult, AddsUpTheOperationsOfItsRanks) {
  const auto line = [](std::string name, std::string shape, int64_t calls, double seconds) {
    return OpLine{.name = std::move(name), .cost = {.shape = std::move(shape)}, .calls = calls, .seconds = seconds};
  };
  RankBenchResult result;
  result.ranks = {{.operations = {line("gemm", "a", 3, 1.0), line("fill", "a", 1, 0.5)}},
                  {.operations = {line("gemm", "b", 8, 1.0), line("gemm", "a", 1, 2.0)}}};
  const std::vector<OpLine> all = result.operations();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].cost.shape, "b");
  EXPECT_EQ(all[1].calls, 4);
  EXPECT_DOUBLE_EQ(all[1].seconds, 1.25);
  EXPECT_EQ(all[2].name, "fill");
}

TEST_F(RankBench, RefusesWhatCannotBeMeasured) {
  const config::Run run = run_of({"model.pipeline_model_parallel_size=4"});
  const comm::Wire wire = plan::find_wire("h100", {});
  expect_error(ErrorKind::user, {"--as-rank '8'", "ranks 0 to 7"},
               [&] { bench_ranks(run, {.ranks = "8", .wire = wire}); });
  comm::Wire lonely = wire;
  lonely.ranks_per_machine = 4;
  lonely.link(comm::LinkKind::between) = {};
  expect_error(ErrorKind::user, {"no link between machines", "group"},
               [&] { bench_ranks(run, {.ranks = "first", .wire = lonely}); });
  expect_error(ErrorKind::user, {"on a GPU"}, [&] { bench_ranks(run, {.ranks = "first", .wire = wire}); });
  const config::Run interleaved = run_of(
      {"model.num_layers=8", "model.pipeline_model_parallel_size=4", "model.virtual_pipeline_model_parallel_size=2"});
  expect_error(ErrorKind::user, {"--micro-batches 3", "too few to interleave"},
               [&] { bench_ranks(interleaved, {.ranks = "first", .wire = wire, .micro_batches = 3}); });
}

}  // namespace
}  // namespace megalith::train
