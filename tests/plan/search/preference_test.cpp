#include "plan/search/preference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/search/describe_search.h"
#include "plan/search/layout_facts.h"
#include "plan/search/planned_runs.h"

namespace megalith::plan {
namespace {

using megalith::testing::planned_recipe;
using ::testing::HasSubstr;

constexpr int64_t kGib = int64_t{1} << 30;

// 64 GPUs in nodes of 8; 16 layers, 32 samples of 1024 tokens, each a micro batch.
RunFeatures run_of(int64_t tensor, int64_t pipeline, int64_t context) {
  const cost::Hardware hardware;
  RunFeatures run{.model = {.layers = 16,
                            .hidden = 512,
                            .heads = 8,
                            .kv_heads = 2,
                            .head_dim = 64,
                            .ffn = 2048,
                            .vocabulary = 1000,
                            .length = 1024},
                  .gpu = hardware.accelerator("h100"),
                  .network = hardware.network("ndr-8x400"),
                  .gpus = 64};
  run.tensor = tensor;
  run.sequence_parallel = tensor > 1;
  run.pipeline = pipeline;
  run.context = context;
  run.data = run.gpus / (tensor * pipeline * context);
  run.global_batch = 32;
  return run;
}

TEST(BytesBetweenNodes, OfAPipelineAreItsMessages) {
  // A stage on each node: 32 micro batches, there and back, 2 bytes of 1024 x 512 activations, an eighth on each rank.
  EXPECT_DOUBLE_EQ(bytes_between_nodes(run_of(8, 8, 1)), 32.0 * 2 * 2 * 1024 * 512 / 8);
  RunFeatures interleaved = run_of(8, 8, 1);
  interleaved.chunks = 2;
  EXPECT_DOUBLE_EQ(bytes_between_nodes(interleaved), 2 * bytes_between_nodes(run_of(8, 8, 1)));
}

TEST(BytesBetweenNodes, OfReplicasAreGradientsAndWeights) {
  // 8 replicas, one on each node: 7/8 of bf16 gradients and of bf16 weights, once a step.
  const RunFeatures run = run_of(8, 1, 1);
  EXPECT_DOUBLE_EQ(bytes_between_nodes(run), 4 * weights_of_rank(run) * 7 / 8);
  // All on 8 nodes, and one ring through the 8 ranks of each.
  const RunFeatures wide = run_of(1, 1, 1);
  EXPECT_DOUBLE_EQ(bytes_between_nodes(wide), 4 * weights_of_rank(wide) * 63 / 64 / 8);
  RunFeatures sharded = run;
  sharded.sharding = Sharding::fsdp;
  EXPECT_GT(bytes_between_nodes(sharded), bytes_between_nodes(run));
}

TEST(BytesBetweenNodes, GroupsInANodeSendNone) {
  RunFeatures run = run_of(2, 1, 4);
  run.gpus = 8;
  run.data = 1;
  EXPECT_EQ(bytes_between_nodes(run), 0.0);
  // The same group of keys and values over two nodes: 3 quarters of 2 x 2 x 1024/4 x 128/8 bytes from each of 4 to the
  // others, in a gather of each pass and the reduction of their gradients.
  RunFeatures apart = run_of(8, 1, 4);
  apart.gpus = 32;
  apart.data = 1;
  const double replicas = 4 * weights_of_rank(apart) * 3 / 4;
  EXPECT_DOUBLE_EQ(bytes_between_nodes(apart) - replicas, 32.0 * 16 * 3 * 3 * 4 * 256 * 16);
}

PlannedLayout layout_of(double seconds, int64_t gib, const RunFeatures& run,
                        config::Granularity recompute = config::Granularity::none) {
  PlannedLayout layout{.candidate = {.recompute = recompute}, .features = run};
  layout.candidate.layout.pipeline = run.pipeline;
  layout.parts.compute = seconds;
  layout.memory.rows = {{.arena = "activations", .bytes = gib * kGib}};
  return layout;
}

TEST(PreferredFor, TheFirstInWhichTiesDiffer) {
  const PlannedLayout one = layout_of(1.0, 60, run_of(8, 8, 1));
  EXPECT_EQ(preferred_for(layout_of(1.0, 59, run_of(8, 1, 1)), one), "more free memory");
  EXPECT_EQ(preferred_for(one, layout_of(1.0, 59, run_of(8, 1, 1))), "");
  PlannedLayout hardly_more = one;
  hardly_more.memory.rows[0].bytes += kGib / 2;
  EXPECT_EQ(preferred_for(one, hardly_more), "");
  RunFeatures interleaved = run_of(8, 8, 1);
  interleaved.chunks = 2;
  EXPECT_EQ(preferred_for(hardly_more, layout_of(1.0, 60, interleaved)), "fewer bytes between nodes");
  RunFeatures one_node = run_of(4, 2, 1);
  one_node.gpus = 8;
  RunFeatures fewer_stages = run_of(8, 1, 1);
  fewer_stages.gpus = 8;
  fewer_stages.data = 1;
  one_node.data = 1;
  EXPECT_EQ(preferred_for(layout_of(1.0, 60, fewer_stages), layout_of(1.0, 60, one_node)), "fewer stages");
  EXPECT_EQ(preferred_for(one, layout_of(1.0, 60, run_of(8, 8, 1), config::Granularity::selective)), "less recompute");
  EXPECT_EQ(preferred_for(one, one), "");
}

TEST(SortByTimeAndPreference, MovesTiesAlone) {
  const RunFeatures run = run_of(8, 8, 1);
  std::vector<PlannedLayout> layouts;
  for (const auto& [seconds, gib] : {std::pair{1.04, 10}, {1.0, 70}, {1.019, 40}, {1.01, 50}, {1.021, 30}})
    layouts.push_back(layout_of(seconds, gib, run));
  const auto sorted_times = [&](double longest) {
    sort_by_time_and_preference(layouts, longest);
    std::vector<double> times;
    for (const PlannedLayout& layout : layouts) times.push_back(layout.seconds());
    return times;
  };
  EXPECT_EQ(sorted_times(2.0), (std::vector{1.019, 1.01, 1.0, 1.021, 1.04}));
  // One that takes longer than what the user has asked with.
  EXPECT_EQ(sorted_times(1.015), (std::vector{1.01, 1.0, 1.019, 1.021, 1.04}));
  EXPECT_EQ(sorted_times(1.0), (std::vector{1.0, 1.01, 1.019, 1.021, 1.04}));
}

TEST(Search, PrefersAmongTies) {
  const SearchRequest request = planned_recipe("llama3.1-70b", 512, "h100");
  const SearchResult found = search_layouts(request);
  ASSERT_TRUE(found.fastest);
  const PlannedLayout& best = found.best.at(0);
  EXPECT_GT(best.seconds(), found.fastest->seconds());
  EXPECT_TRUE(is_tie(best.seconds(), found.fastest->seconds()));
  EXPECT_NE(preferred_for(best, *found.fastest), "");
  const PlannedLayout own = plan_as_is(request);
  bool tied = true;
  for (size_t i = 1; i < found.best.size(); ++i) {
    const PlannedLayout& before = found.best[i - 1];
    const double seconds = found.best[i].seconds();
    tied = tied && is_tie(seconds, found.least_seconds()) && seconds <= own.seconds();
    if (tied) {
      EXPECT_EQ(preferred_for(found.best[i], before), "") << i;
    } else if (!is_tie(before.seconds(), found.least_seconds())) {
      EXPECT_GE(seconds, before.seconds()) << i;
    }
  }
  const std::string table = describe_search(request, found, {.tokens = 1e12});
  EXPECT_THAT(table, HasSubstr(short_name(best.candidate) + " ~"));
  EXPECT_THAT(table, HasSubstr("preferred        for "));
  EXPECT_THAT(to_yaml(request, found), HasSubstr("# Preferred for "));
}

}  // namespace
}  // namespace megalith::plan
