#include <gtest/gtest.h>

#include "core/rng.h"
#include "parallel/layout.h"
#include "parallel/placement/parameter_store.h"

namespace megalith::parallel {
namespace {

TEST(ParameterTable, RefusesWhatDoesNotFit) {
  ParameterTable table;
  table.add({.name = "a", .shape = {6, 2}, .blocks = {2, 4}});
  EXPECT_THROW(table.add({.name = "a", .shape = {1}}), Error);
  EXPECT_THROW(table.add({.name = "b", .shape = {6, 2}, .blocks = {2, 2}}), Error);
  EXPECT_THROW(table.index_of("c"), Error);
}

TEST(LocalShape, CutsTheDimensionThatTheSpecNames) {
  const ParameterSpec rows{.name = "qkv", .shape = {12, 8}, .cuts = {{.dimension = 0, .axes = {Axis::tp}}}};
  const ParameterSpec columns{.name = "out", .shape = {12, 8}, .cuts = {{.dimension = 1, .axes = {Axis::tp}}}};
  const ParameterSpec whole{.name = "norm", .shape = {8}};
  EXPECT_EQ(local_shape(rows, 4), (Shape{3, 8}));
  EXPECT_EQ(local_shape(columns, 4), (Shape{12, 2}));
  EXPECT_EQ(local_shape(whole, 4), (Shape{8}));
}

TEST(HomesOf, PlacesLayersChunksAndTiedEmbeddings) {
  const Layout layout{.pipeline = 4, .chunks = 2};
  const auto homes = [&](const char* name, bool tied) {
    return homes_of({.name = name, .shape = {1}}, layout, 16, tied);
  };
  EXPECT_EQ(homes("layers.0.mlp.up.weight", true), (std::vector<Home>{{0, 0}}));
  EXPECT_EQ(homes("layers.3.mlp.up.weight", true), (std::vector<Home>{{1, 0}}));
  EXPECT_EQ(homes("layers.8.mlp.up.weight", true), (std::vector<Home>{{0, 1}}));
  EXPECT_EQ(homes("layers.15.mlp.up.weight", true), (std::vector<Home>{{3, 1}}));
  EXPECT_EQ(homes("embedding.tokens.weight", true), (std::vector<Home>{{0, 0}, {3, 1}}));
  EXPECT_EQ(homes("embedding.tokens.weight", false), (std::vector<Home>{{0, 0}}));
  EXPECT_EQ(homes("final_norm.weight", true), (std::vector<Home>{{3, 1}}));
}

// The same seed gives the same parameter whatever stands beside it in the table.
TEST(ParameterStore, InitialisationIsKeyedByName) {
  const ParameterSpec wanted{.name = "wanted", .shape = {5, 7}, .initial = Initial::normal, .std = 0.5};
  ThreadPool pool(2);
  Stream stream(pool);
  std::vector<std::vector<float>> seen;
  for (const bool with_company : {false, true}) {
    ParameterTable table;
    if (with_company) table.add({.name = "company", .shape = {3, 3}, .initial = Initial::normal, .std = 1.0});
    table.add(wanted);
    Arena arena("weights", Device::cpu, 4096);
    const Placement placement(table);
    const ParameterStore store({.placement = placement}, arena, nullptr);
    store.initialise(stream, 42);
    const Tensor weight = store["wanted"].weight;
    seen.emplace_back(weight.as<float>(), weight.as<float>() + 35);
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0][8], static_cast<float>(0.5 * normal_at(named_key(42, "wanted"), 8)));
}

}  // namespace
}  // namespace megalith::parallel
