#include "plan/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <tuple>

#include "config/derived.h"
#include "core/file.h"
#include "plan/rehearsal.h"
#include "plan/run_layout.h"
#include "plan/run_request.h"
#include "plan/search/describe_search.h"
#include "plan/search/layout_clock.h"
#include "plan/search/memory_bound.h"
#include "plan/search/planned_runs.h"

namespace megalith::plan {
namespace {

using megalith::testing::planned_recipe;

int64_t rehearsed_bytes(const SearchRequest& request, const Candidate& candidate) {
  const config::Run run = with_candidate(request.run, request.cluster, candidate);
  return memory_of_worst_rank(stage_request(run, request.vocabulary)).table.total();
}

// Every layout of a request, whether it fits or not.
std::vector<Candidate> some_layouts(const SearchRequest& request) {
  std::vector<Candidate> found;
  const int64_t gpus = request.cluster.gpus;
  const int64_t batch = request.run.model.global_batch_size;
  for (const int64_t t : {1, 2, 4, 8}) {
    for (const int64_t c : {1, 2}) {
      for (const int64_t p : {1, 2, 4, 8}) {
        for (const int64_t v : {1, 2, 3}) {
          for (const int64_t b : {1, 2, 4}) {
            if (gpus % (t * c * p) != 0 || (p == 1 && v > 1)) continue;
            Candidate candidate{.layout = {.tensor = t, .pipeline = p, .chunks = v, .context = c}, .micro_batch = b};
            candidate.layout.data = gpus / (t * c * p);
            candidate.layout.sequence_parallel = t > 1;
            if (batch % (b * candidate.layout.data) != 0) continue;
            for (const config::Granularity recompute :
                 {config::Granularity::none, config::Granularity::selective, config::Granularity::full}) {
              for (const int sharding : {0, 1, 2}) {
                if (sharding == 2 && p > 1) continue;
                candidate.recompute = recompute;
                candidate.layout.shards_optimizer = sharding > 0 && candidate.layout.replicas() > 1;
                candidate.layout.shards_weights = sharding == 2 && candidate.layout.replicas() > 1;
                const config::Run run = with_candidate(request.run, request.cluster, candidate);
                if (parallel::layout_problems(layout_of(run), demands_of(run, request.vocabulary)).empty())
                  found.push_back(candidate);
              }
            }
          }
        }
      }
    }
  }
  return found;
}

int64_t least_layers_of_first_stage(const RunFeatures& run) {
  return run.layers_of_stage(0) / run.chunks;
}

void expect_bound_below(const SearchRequest& request, size_t layouts, std::mt19937& random) {
  const LayoutClock clock(request);
  std::vector<Candidate> candidates = some_layouts(request);
  ASSERT_GE(candidates.size(), layouts) << request.run.name;
  std::shuffle(candidates.begin(), candidates.end(), random);
  candidates.resize(layouts);
  for (const Candidate& candidate : candidates) {
    const RunFeatures run = clock.features_of(candidate);
    const auto exact = static_cast<double>(rehearsed_bytes(request, candidate));
    const double bound = memory_bound(run, least_layers_of_first_stage(run));
    EXPECT_LE(bound, exact) << request.run.name << " " << parallel::to_string(candidate.layout) << " b"
                            << candidate.micro_batch;
    EXPECT_GE(bound, 0.2 * (exact - 3e9)) << request.run.name << " " << parallel::to_string(candidate.layout);
  }
}

TEST(MemoryBound, IsNeverAboveTheRehearsal) {
  std::mt19937 random(7);
  for (const auto& entry : std::filesystem::directory_iterator(in_repository("recipes"))) {
    if (entry.path().extension() != ".yaml") continue;
    expect_bound_below(planned_recipe(entry.path().stem(), 64, "h200", {"model.global_batch_size=128"}), 14, random);
  }
  expect_bound_below(planned_recipe("llama3.1-8b", 16, "h200", {"model.fp8=true", "model.fp8_hybrid=true"}), 40,
                     random);
}

TEST(Search, MemoryDependsOnFewMicroBatches) {
  const SearchRequest request = planned_recipe("llama3.1-8b", 16, "h200", {"model.global_batch_size=512"});
  std::vector<Candidate> layouts = some_layouts(request);
  std::mt19937 random(5);
  std::shuffle(layouts.begin(), layouts.end(), random);
  layouts.resize(40);
  int compared = 0;
  for (const Candidate& candidate : layouts) {
    const config::Run run = with_candidate(request.run, request.cluster, candidate);
    const engine::StageRequest whole = stage_request(run, request.vocabulary);
    const engine::StageRequest few = with_few_micro_batches(whole);
    compared += few.micro_batches < whole.micro_batches ? 1 : 0;
    EXPECT_EQ(memory_of_worst_rank(few).table.total(), memory_of_worst_rank(whole).table.total())
        << parallel::to_string(candidate.layout) << " b" << candidate.micro_batch;
  }
  EXPECT_GT(compared, 20);
}

TEST(Search, MemoryIsThatOfTheRehearsal) {
  const SearchRequest request = planned_recipe("gpt3-13b", 64, "h100");
  for (const PlannedLayout& layout : search_layouts(request).best)
    EXPECT_EQ(layout.memory.total(), rehearsed_bytes(request, layout.candidate));
}

TEST(Search, FindsWhatTryingAllFinds) {
  const SearchRequest request = planned_recipe("gpt3-2.7b", 64, "a100", {"model.global_batch_size=128"});
  const SearchResult found = search_layouts(request);
  ASSERT_FALSE(found.best.empty());
  LayoutClock clock(request);
  const int64_t usable = usable_bytes(request.cluster.gpu, request.headroom);
  for (const Candidate& candidate : some_layouts(request)) {
    const double seconds = clock.exact(candidate, clock.features_of(candidate)).total();
    if (seconds >= found.least_seconds() * (1 - 1e-9)) continue;
    EXPECT_GT(rehearsed_bytes(request, candidate), usable) << parallel::to_string(candidate.layout);
  }
}

TEST(Search, LayoutsWorkForEveryBatchOfARamp) {
  const SearchRequest request =
      planned_recipe("gpt3-6.7b", 64, "h100", {"model.rampup_batch_size=[32,32,1000]", "model.global_batch_size=1024"});
  const SearchResult found = search_layouts(request);
  ASSERT_FALSE(found.best.empty());
  for (const PlannedLayout& layout : found.best) {
    EXPECT_LE(layout.candidate.layout.data * layout.candidate.micro_batch, 32);
    check_layout(with_candidate(request.run, request.cluster, layout.candidate), request.vocabulary);
  }
}

TEST(Search, PinnedKeysKeepTheirValues) {
  SearchRequest request =
      planned_recipe("gpt3-13b", 64, "h100", {"model.tensor_model_parallel_size=4", "model.micro_batch_size=2"});
  request.pinned = {"model.tensor_model_parallel_size", "model.micro_batch_size"};
  for (const PlannedLayout& layout : search_layouts(request).best) {
    EXPECT_EQ(layout.candidate.layout.tensor, 4);
    EXPECT_EQ(layout.candidate.micro_batch, 2);
  }
}

TEST(Search, ShowsNoLayoutTwice) {
  const std::vector<PlannedLayout> best = search_layouts(planned_recipe("gpt3-13b", 64, "h100")).best;
  for (size_t i = 0; i < best.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      Candidate a = best[i].candidate;
      Candidate b = best[j].candidate;
      const bool same_layers = best[i].features.stage_layers == best[j].features.stage_layers;
      a.layout.split = b.layout.split = {};
      EXPECT_FALSE(same_layers && a.layout == b.layout && a.micro_batch == b.micro_batch && a.recompute == b.recompute);
    }
  }
}

TEST(Search, NothingOnTheFrontIsBeatenInTimeAndMemory) {
  SearchRequest request = planned_recipe("gpt3-13b", 64, "h100");
  const SearchResult plain = search_layouts(request);
  EXPECT_TRUE(plain.front.empty());
  request.finds_front = true;
  const SearchResult found = search_layouts(request);
  ASSERT_GT(found.front.size(), 3U);
  EXPECT_DOUBLE_EQ(found.front[0].seconds(), plain.least_seconds());
  for (size_t i = 1; i < found.front.size(); ++i) {
    EXPECT_GT(found.front[i].seconds(), found.front[i - 1].seconds());
    EXPECT_LT(found.front[i].memory.total(), found.front[i - 1].memory.total());
  }
  EXPECT_LT(found.front.back().memory.total(), found.front[0].memory.total() / 2);
  EXPECT_LE(found.front.back().seconds(), 2 * found.front[0].seconds());
  for (const PlannedLayout& layout : found.front)
    EXPECT_EQ(layout.memory.total(), rehearsed_bytes(request, layout.candidate));
}

TEST(Search, IsNoSlowerThanTheRecipe) {
  for (const auto& [recipe, gpus] : {std::pair{"gpt3-6.7b", 16}, {"llama3.1-8b", 64}, {"llama3.1-70b", 128}}) {
    const SearchRequest request = planned_recipe(recipe, gpus, "h200", {"model.global_batch_size=512"});
    const PlannedLayout own = plan_as_is(request);
    if (own.memory.total() > usable_bytes(request.cluster.gpu, request.headroom)) continue;
    EXPECT_LE(search_layouts(request).best.at(0).seconds(), own.seconds() * (1 + 1e-9)) << recipe;
  }
}

// What the documents that Megalith is built from train, on as many GPUs.
TEST(Search, IsNoSlowerThanThoseWhoPublishedTheRecipe) {
  for (const auto& [recipe, gpu, gpus] : {std::tuple{"gpt3-175b-dgxc", "h100", 128},
                                          {"gpt3-175b-azure", "h100", 128},
                                          {"gpt3-175b-neuron", "trn1", 256},
                                          {"gpt3-175b", "h100", 256},
                                          {"llama3.1-405b", "h200", 432}}) {
    const SearchRequest request = planned_recipe(recipe, gpus, gpu);
    ASSERT_EQ(config::world_size(request.run.trainer), gpus) << recipe;
    const PlannedLayout own = plan_as_is(request);
    const SearchResult found = search_layouts(request);
    ASSERT_FALSE(found.best.empty()) << recipe;
    EXPECT_LE(found.best[0].seconds(), own.seconds() * (1 + 1e-9)) << recipe;
    EXPECT_LE(found.best[0].memory.total(), usable_bytes(request.cluster.gpu, request.headroom)) << recipe;
  }
}

TEST(Search, NothingFits405BOnOneNode) {
  const SearchRequest request = planned_recipe("llama3.1-405b", 8, "h100", {"model.global_batch_size=8"});
  const SearchResult result = search_layouts(request);
  EXPECT_TRUE(result.best.empty());
  EXPECT_GT(result.possible, 0);
}

// What `train -c RECIPE -c best.yaml --dry-run` would take from it.
void expect_written_layout(const std::string& recipe, int64_t gpus) {
  const SearchRequest request = planned_recipe(recipe, gpus, "h100");
  const SearchResult result = search_layouts(request);
  if (result.best.empty()) {
    EXPECT_TRUE(recipe == "demo" || recipe == "llama3.1-405b") << recipe << " on " << gpus;
    return;
  }
  const PlannedLayout& best = result.best[0];
  config::Run again =
      config::load(std::vector<config::Source>{{"recipe", read_text(in_repository("recipes/" + recipe + ".yaml"))},
                                               {"best.yaml", to_yaml(request, result)}},
                   {"trainer.precision=bf16"});
  config::validate(again);
  EXPECT_EQ(config::world_size(again.trainer), gpus);
  Candidate read = candidate_of(again);
  // A recipe's optimizer may ask for shards, which are nothing where there is one replica.
  if (read.layout.replicas() == 1) read.layout.shards_optimizer = best.candidate.layout.shards_optimizer;
  EXPECT_EQ(read.layout, best.candidate.layout) << recipe << " on " << gpus;
  EXPECT_EQ(read.micro_batch, best.candidate.micro_batch);
  EXPECT_EQ(read.recompute, best.candidate.recompute);
  check_layout(again, request.vocabulary);
  EXPECT_EQ(memory_of_worst_rank(stage_request(again, request.vocabulary)).table.total(), best.memory.total());
}

// Every recipe on one number of GPUs; on all of them with MEGALITH_LONG_TESTS set.
TEST(Search, WritesRecipesOfTheSameLayout) {
  const std::vector<int64_t> numbers{64, 512, 4096, 16384};
  std::vector<std::string> recipes;
  for (const auto& entry : std::filesystem::directory_iterator(in_repository("recipes"))) {
    if (entry.path().extension() == ".yaml") recipes.push_back(entry.path().stem());
  }
  std::sort(recipes.begin(), recipes.end());
  for (size_t i = 0; i < recipes.size(); ++i) {
    for (size_t j = 0; j < numbers.size(); ++j) {
      if (std::getenv("MEGALITH_LONG_TESTS") != nullptr || i % numbers.size() == j)
        expect_written_layout(recipes[i], numbers[j]);
    }
  }
}

}  // namespace
}  // namespace megalith::plan
