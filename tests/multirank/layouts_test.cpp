#include "same_training.h"

// docs/design.md, law 1: the layout does not change the result. Each rank is a thread here; scripts/check-layouts does
// the same with processes.

namespace megalith::train::testing {
namespace {

using parallel::Layout;
using parallel::PipelineSchedule;

class Layouts : public ::testing::TestWithParam<std::tuple<std::string, Layout>> {
 protected:
  static LayoutCase test() {
    const auto& [model, layout] = GetParam();
    return {.config = model == "gpt" ? gpt() : llama(), .layout = layout};
  }
};

TEST_P(Layouts, TrainsAsOneRankDoes) {
  expect_same_training(test());
}

const std::vector<Layout> kLayouts = {
    {.data = 2},
    {.data = 4, .shards_optimizer = true},
    {.tensor = 2},
    {.tensor = 4},
    {.tensor = 4, .sequence_parallel = true},
    {.tensor = 2, .data = 2, .sequence_parallel = true, .shards_optimizer = true},
    {.pipeline = 2},
    {.pipeline = 4},
    {.pipeline = 2, .chunks = 2},
    {.pipeline = 2, .data = 2, .shards_optimizer = true},
    {.pipeline = 2, .schedule = PipelineSchedule::zero_bubble},
    {.context = 2},
    {.context = 4},
    {.context = 2, .data = 2, .shards_optimizer = true},
    {.tensor = 2, .context = 2, .sequence_parallel = true},
    {.tensor = 2, .pipeline = 2, .data = 2, .sequence_parallel = true, .shards_optimizer = true},
    {.tensor = 2, .pipeline = 2, .chunks = 2, .context = 2},
    {.chunks = 4, .data = 2, .shards_optimizer = true, .shards_weights = true},
    {.tensor = 2, .chunks = 4, .sequence_parallel = true, .shards_optimizer = true, .shards_weights = true},
    {.pipeline = 3, .split = {.counts_embedding = true, .counts_loss = true}},
    {.pipeline = 2, .split = {.first_stage = 1}},
};

std::string name_of_case(const ::testing::TestParamInfo<Layouts::ParamType>& info) {
  const auto& [model, l] = info.param;
  std::string name = fmt::format("{}_{}_TP{}_PP{}_VP{}_CP{}_DP{}", info.index, model, l.tensor, l.pipeline, l.chunks,
                                 l.context, l.data);
  if (l.sequence_parallel) name += "_SP";
  if (l.shards_weights) name += "_sharded_weights";
  if (l.schedule == PipelineSchedule::zero_bubble) name += "_zero_bubble";
  return name;
}

INSTANTIATE_TEST_SUITE_P(Gpt, Layouts, ::testing::Combine(::testing::Values("gpt"), ::testing::ValuesIn(kLayouts)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Llama, Layouts, ::testing::Combine(::testing::Values("llama"), ::testing::ValuesIn(kLayouts)),
                         name_of_case);

struct NamedModel {
  std::string name;
  model::ModelConfig config;
};
std::vector<NamedModel> models() {
  return {{"gpt", gpt()}, {"llama", llama()}};
}

struct NamedCase {
  std::string name;
  LayoutCase test;
  Tolerance tolerance = {};
};

model::ModelConfig with_recompute(model::ModelConfig config, model::Recompute recompute, int64_t layers = 1,
                                  bool first_layers = false) {
  config.recompute = recompute;
  config.recompute_layers = layers;
  config.recompute_first_layers = first_layers;
  return config;
}

model::ModelConfig in_bf16(model::ModelConfig config) {
  config.compute = DType::bf16;
  return config;
}

std::vector<NamedCase> documents_and_batches() {
  std::vector<NamedCase> cases;
  for (const NamedModel& model : models()) {
    const auto add = [&](const std::string& what, LayoutCase test) {
      test.config = model.config;
      cases.push_back({model.name + "_" + what, test});
    };
    add("documents_CP2", {.layout = {.context = 2}, .documents = 3});
    add("documents_CP4", {.layout = {.context = 4}, .documents = 2});
    add("documents_TP2_SP", {.layout = {.tensor = 2, .sequence_parallel = true}, .documents = 3});
    add("documents_PP2_VP2", {.layout = {.pipeline = 2, .chunks = 2}, .documents = 3});
    add("documents_TP2_PP2_CP2", {.layout = {.tensor = 2, .pipeline = 2, .context = 2}, .documents = 3});
    add("micro_batch_2_alone", {.micro_batch = 2});
    add("micro_batch_2_DP2", {.layout = {.data = 2}, .micro_batch = 2});
    add("micro_batch_2_PP2_VP2", {.layout = {.pipeline = 2, .chunks = 2}, .micro_batch = 2});
    add("micro_batch_2_TP2_SP_CP2",
        {.layout = {.tensor = 2, .context = 2, .sequence_parallel = true}, .micro_batch = 2});
    add("documents_micro_batch_2_CP2", {.layout = {.context = 2}, .micro_batch = 2, .documents = 3});
    add("three_micro_batches_PP2", {.layout = {.pipeline = 2}, .global_batch = 3});
    add("three_micro_batches_PP2_zero_bubble",
        {.layout = {.pipeline = 2, .schedule = PipelineSchedule::zero_bubble}, .global_batch = 3});
    add("two_micro_batches_PP4", {.layout = {.pipeline = 4}, .global_batch = 2});
    add("one_micro_batch_PP2_DP2", {.layout = {.pipeline = 2, .data = 2}, .global_batch = 2});
  }
  return cases;
}

struct NamedLayout {
  std::string name;
  Layout layout;
};

std::vector<NamedCase> recomputed() {
  using model::Recompute;
  const std::vector<NamedLayout> layouts = {
      {"alone", {}},
      {"PP2_VP2", {.pipeline = 2, .chunks = 2}},
      {"PP2_zero_bubble", {.pipeline = 2, .schedule = PipelineSchedule::zero_bubble}},
      {"TP2_SP_CP2_DP2", {.tensor = 2, .context = 2, .data = 2, .sequence_parallel = true, .shards_optimizer = true}},
      {"TP2_SP_PP2_zero_bubble",
       {.tensor = 2, .pipeline = 2, .sequence_parallel = true, .schedule = PipelineSchedule::zero_bubble}},
  };
  std::vector<NamedCase> cases;
  for (const NamedModel& model : models()) {
    for (const NamedLayout& layout : layouts) {
      const auto add = [&](const std::string& what, const model::ModelConfig& recomputing) {
        cases.push_back(
            {fmt::format("{}_{}_{}", model.name, what, layout.name), {.config = recomputing, .layout = layout.layout}});
      };
      add("selective", with_recompute(model.config, Recompute::selective));
      add("full_uniform_1", with_recompute(model.config, Recompute::full));
      add("full_uniform_2", with_recompute(model.config, Recompute::full, 2));
      add("full_block_1", with_recompute(model.config, Recompute::full, 1, true));
    }
  }
  return cases;
}

std::vector<NamedCase> sharded_weights() {
  std::vector<NamedCase> cases;
  for (const NamedModel& model : models()) {
    const auto add = [&](const std::string& what, Layout layout) {
      layout.chunks = model.config.layers;
      layout.shards_optimizer = true;
      layout.shards_weights = true;
      cases.push_back({model.name + "_" + what, {.config = model.config, .layout = layout}});
      cases.push_back(
          {model.name + "_recompute_" + what,
           {.config = with_recompute(model.config, model::Recompute::full), .layout = layout, .micro_batch = 2}});
    };
    add("DP4", {.data = 4});
    add("CP2", {.context = 2});
    add("CP2_DP2", {.context = 2, .data = 2});
    add("TP2_DP2", {.tensor = 2, .data = 2});
    add("TP2_SP_DP2", {.tensor = 2, .data = 2, .sequence_parallel = true});
  }
  return cases;
}

// 5e-3 for losses and 2e-2 for gradients. Adam makes a whole step of a gradient however small, so that weights that
// were zero may end up farther apart.
std::vector<NamedCase> bf16() {
  const Tolerance sums{.first_loss = 1e-6, .loss = 5e-3, .norm = 2e-2, .weights = 0.3};
  const Tolerance everything{.first_loss = 5e-3, .loss = 5e-3, .norm = 2e-2, .weights = 0.3};
  std::vector<NamedCase> cases;
  for (const NamedModel& model : models()) {
    const auto add = [&](const std::string& what, const Layout& layout) {
      cases.push_back(
          {model.name + "_compute_" + what, {.config = in_bf16(model.config), .layout = layout}, everything});
      if (layout.replicas() == 1) return;
      cases.push_back(
          {model.name + "_sums_" + what, {.config = model.config, .layout = layout, .reduces_in_bf16 = true}, sums});
    };
    add("DP2", {.data = 2});
    add("DP4_sharded", {.data = 4, .shards_optimizer = true});
    add("TP2_SP_PP2_VP2", {.tensor = 2, .pipeline = 2, .chunks = 2, .sequence_parallel = true});
    add("PP2_zero_bubble", {.pipeline = 2, .schedule = PipelineSchedule::zero_bubble});
    add("CP2_DP2_sharded", {.context = 2, .data = 2, .shards_optimizer = true});
    add("CP2_DP2_sharded_weights",
        {.chunks = model.config.layers, .context = 2, .data = 2, .shards_optimizer = true, .shards_weights = true});
  }
  return cases;
}

class LayoutCases : public ::testing::TestWithParam<NamedCase> {};

TEST_P(LayoutCases, TrainAsOneRankDoes) {
  expect_same_training(GetParam().test, GetParam().tolerance);
}

const auto kCaseName = [](const ::testing::TestParamInfo<NamedCase>& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Batches, LayoutCases, ::testing::ValuesIn(documents_and_batches()), kCaseName);
INSTANTIATE_TEST_SUITE_P(Recomputed, LayoutCases, ::testing::ValuesIn(recomputed()), kCaseName);
INSTANTIATE_TEST_SUITE_P(ShardedWeights, LayoutCases, ::testing::ValuesIn(sharded_weights()), kCaseName);
INSTANTIATE_TEST_SUITE_P(Bf16, LayoutCases, ::testing::ValuesIn(bf16()), kCaseName);

TEST(LostRank, LeavesTheOthersAnError) {
  const LayoutCase test{.config = llama(), .layout = {.pipeline = 2}};
  const auto train_until_lost = [&](comm::World& world) {
    engine::EngineOptions options = engine_options(test);
    options.deadline = 1.0;
    engine::Engine engine = make_engine(options, world);
    engine.initialise(5);
    data::StepBatch batch = batch_of(test, 0, 0);
    // The last stage breaks off in the middle of the step.
    if (world.rank() == 1) batch.micro_batches[batch.micro_batches.size() / 2].length = 1;
    engine.run_step({.weight = batch.total_weight}, batch.micro_batches);
  };
  EXPECT_THROW(comm::run_local_ranks(2, train_until_lost), Error);
}

TEST(SameLayout, TwiceGivesTheSameBits) {
  const std::vector<Layout> layouts = {
      {.tensor = 2, .pipeline = 2, .data = 2, .sequence_parallel = true, .shards_optimizer = true},
      {.pipeline = 2, .context = 2, .schedule = PipelineSchedule::zero_bubble},
      {.chunks = 4, .data = 4, .shards_optimizer = true, .shards_weights = true},
  };
  for (const Layout& layout : layouts) {
    for (const model::ModelConfig& config : {gpt(), in_bf16(llama())}) {
      const LayoutCase test{.config = config, .layout = layout};
      EXPECT_TRUE(train_on(test) == train_on(test)) << to_string(layout);
    }
  }
}

}  // namespace
}  // namespace megalith::train::testing
