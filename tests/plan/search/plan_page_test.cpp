#include "plan/search/plan_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/search/planned_runs.h"
#include "plan/search/simulated_step.h"

namespace megalith::plan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t count(const std::string& text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

std::string page_of(SearchRequest request, const Circumstances& circumstances) {
  request.finds_front = true;
  return plan_page(request, search_layouts(request), circumstances);
}

TEST(PlanPage, HasTheFrontThePartsAndThePipeline) {
  const SearchRequest request = megalith::testing::planned_recipe("gpt3-175b", 64, "h100");
  const std::string page = page_of(request, {.tokens = 3e11, .price = 2.5});
  for (const char* figure : {"id=\"parts\"", "id=\"front\"", "id=\"pipeline\""})
    EXPECT_EQ(count(page, figure), 1U) << figure;
  EXPECT_THAT(page, HasSubstr("<dt>Cost</dt>"));
  EXPECT_THAT(page, HasSubstr("micro batches of a step"));
  EXPECT_THAT(page, HasSubstr("stage 0"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* fetched : {"src=\"http", "href=\"http", "url(", "@import"})
    EXPECT_THAT(page, Not(HasSubstr(fetched)));
}

// What is drawn of a pipeline is what its step was predicted with.
TEST(PlanPage, ThePipelineTakesWhatThePartsSay) {
  const SearchRequest request = megalith::testing::planned_recipe(
      "gpt3-175b", 64, "h100", {"model.global_batch_size=64", "model.micro_batch_size=1"});
  const SearchResult found = search_layouts(request);
  for (const PlannedLayout& layout : found.best) {
    const parallel::Layout& l = layout.candidate.layout;
    if (l.pipeline == 1) continue;
    const StepTimeline timeline =
        simulated_pipeline(layout.features, l, request.constants, layout.times.blocks, layout.features.micro_batches());
    const StepParts& p = layout.parts;
    const double passes = p.total() - p.data - p.optimizer - p.jitter;
    EXPECT_NEAR(timeline.simulation.duration, passes, 2e-2 * passes) << parallel::to_string(l);
  }
}

// Interleaved stages take turns in groups of as many micro batches as there are stages: no part of a group is drawn.
TEST(PlanPage, WholeGroupsOfMicroBatches) {
  const auto page_with = [](const char* pipeline) {
    const SearchRequest request = megalith::testing::planned_recipe(
        "llama3.1-405b", 512, "h100",
        {"model.tensor_model_parallel_size=2", std::string("model.pipeline_model_parallel_size=") + pipeline,
         "model.virtual_pipeline_model_parallel_size=2", "model.context_parallel_size=4", "model.global_batch_size=448",
         "model.account_for_embedding_in_pipeline_split=true", "model.account_for_loss_in_pipeline_split=true"});
    return plan_page(request, {.best = {plan_as_is(request)}}, {.tokens = 1e12});
  };
  EXPECT_THAT(page_with("32"), HasSubstr(" with 64 of the 224 micro batches of a step"));
  EXPECT_THAT(page_with("64"), HasSubstr(" with 64 of the 448 micro batches of a step"));
}

TEST(PlanPage, WithoutAPipelineThereIsNoneToDraw) {
  const std::string page = page_of(megalith::testing::planned_recipe("gpt3-1.3b", 8, "h100"), {.tokens = 1e9});
  EXPECT_THAT(page, Not(HasSubstr("id=\"pipeline\"")));
  EXPECT_THAT(page, Not(HasSubstr("<dt>Cost</dt>")));
}

}  // namespace
}  // namespace megalith::plan
