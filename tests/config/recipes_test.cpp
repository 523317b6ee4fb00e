#include <gtest/gtest.h>

#include <filesystem>

#include "config/derived.h"
#include "config/load.h"
#include "config/print.h"
#include "config/validate.h"
#include "core/file.h"
#include "repository.h"

namespace megalith::config {
namespace {

std::filesystem::path recipes() {
  return in_repository("recipes");
}

Run recipe(const std::string& name, const std::vector<std::string>& overrides = {}) {
  config::Run run = load(std::vector{recipes() / (name + ".yaml")}, overrides);
  validate(run);
  return run;
}

TEST(Recipes, AllAreValidAndSetOnlyImplementedKeys) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(recipes())) {
    if (entry.is_directory()) continue;  // of cluster profiles
    SCOPED_TRACE(entry.path().string());
    ++count;
    EXPECT_TRUE(read_text(entry.path()).starts_with("# ")) << "a recipe begins with its source";
    LoadReport report;
    config::Run run = load(std::vector{entry.path()}, {}, &report);
    validate(run);
    EXPECT_TRUE(report.ignored.empty()) << describe(report);
    EXPECT_EQ(run.name, entry.path().stem());
    EXPECT_GT(run.model.tokenizer.vocab_size, 0);
    EXPECT_EQ(word_of(run.model.data.data_impl), "mock");
    config::Run again = load(std::vector<Source>{{"printed", to_yaml(run)}}, {});
    validate(again);
    EXPECT_EQ(to_yaml(again), to_yaml(run));
  }
  EXPECT_EQ(count, 21);
}

TEST(Recipes, LayoutsOfTheirSources) {
  struct Layout {
    std::string name;
    int64_t world, data_parallel, micro_batches;
  };
  const std::vector<Layout> layouts = {
      {"gpt3-125m", 1, 1, 256},       {"gpt3-13b", 32, 4, 256},         {"gpt3-175b", 256, 8, 256},
      {"gpt3-175b-dgxc", 128, 4, 64}, {"gpt3-175b-azure", 128, 1, 512}, {"gpt3-375m", 16, 16, 32},
      {"gpt3-857m", 16, 16, 32},      {"gpt3-23b", 128, 4, 32},         {"gpt3-30b", 64, 2, 256},
      {"gpt3-46b", 256, 4, 64},       {"gpt3-175b-neuron", 256, 1, 64}, {"llama3.1-8b", 8, 4, 128},
      {"llama3.1-70b", 256, 8, 256},  {"llama3.1-405b", 432, 3, 144},
  };
  for (const auto& [name, world, data_parallel, micro_batches] : layouts) {
    SCOPED_TRACE(name);
    const config::Run run = recipe(name);
    EXPECT_EQ(world_size(run.trainer), world);
    EXPECT_EQ(data_parallel_size(run), data_parallel);
    EXPECT_EQ(micro_batches_per_step(run), micro_batches);
  }
}

TEST(Recipes, TakeOverridesAsInTheDocs) {
  const config::Run run =
      recipe("gpt3-125m", {"trainer.max_steps=100", "model.data.data_prefix=[1.0,data/my-gpt3_00_text_document]"});
  EXPECT_EQ(run.trainer.max_steps, 100);
  EXPECT_EQ(word_of(run.model.data.data_impl), "mmap");
  EXPECT_EQ(compute_dtype(run.trainer), DType::f32);
  EXPECT_EQ(recipe("gpt3-175b-dgxc", {"training.trainer.num_nodes=32", "training.model.global_batch_size=512"})
                .trainer.num_nodes,
            32);
}

TEST(Recipes, LargeOnesFitOneProcessWhenAsked) {
  config::Run run =
      recipe("llama3.1-8b", {"trainer.devices=1", "model.context_parallel_size=1", "trainer.precision=32"});
  EXPECT_EQ(data_parallel_size(run), 1);
}

}  // namespace
}  // namespace megalith::config
