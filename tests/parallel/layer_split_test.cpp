#include "parallel/layer_split.h"

#include <gtest/gtest.h>

namespace megalith::parallel {
namespace {

TEST(LayerSplit, EqualChunks) {
  const Layout layout{.pipeline = 4, .chunks = 2};
  EXPECT_EQ(layers_of(layout, 16, {.stage = 0, .chunk = 0}), (Interval{0, 2}));
  EXPECT_EQ(layers_of(layout, 16, {.stage = 3, .chunk = 0}), (Interval{6, 8}));
  EXPECT_EQ(layers_of(layout, 16, {.stage = 1, .chunk = 1}), (Interval{10, 12}));
}

TEST(LayerSplit, EmbeddingAndLossTakeThePlaceOfLayers) {
  const Layout layout{.pipeline = 8, .chunks = 8, .split = {.counts_embedding = true, .counts_loss = true}};
  EXPECT_EQ(layer_split_problem(layout, 126), "");
  EXPECT_EQ(layers_of(layout, 126, {.stage = 0, .chunk = 0}), (Interval{0, 1}));
  EXPECT_EQ(layers_of(layout, 126, {.stage = 1, .chunk = 0}), (Interval{1, 3}));
  EXPECT_EQ(layers_of(layout, 126, {.stage = 7, .chunk = 7}), (Interval{125, 126}));
}

TEST(LayerSplit, GivenSizesOfTheEnds) {
  const Layout layout{.pipeline = 4, .split = {.first_stage = 5, .last_stage = 3}};
  EXPECT_EQ(layers_per_virtual_stage(layout, 22), (std::vector<int64_t>{5, 7, 7, 3}));
  const Layout interleaved{.pipeline = 2, .chunks = 2, .split = {.first_stage = 2}};
  EXPECT_EQ(layers_per_virtual_stage(interleaved, 8), (std::vector<int64_t>{1, 3, 1, 3}));
}

// Never a smaller model: whatever is accepted has every layer once, and every layer knows its home.
TEST(LayerSplit, AcceptedSplitsHoldEveryLayerOnce) {
  int64_t accepted = 0;
  for (int64_t layers = 1; layers <= 24; ++layers) {
    for (int64_t pipeline = 1; pipeline <= 6; ++pipeline) {
      for (int64_t chunks = 1; chunks <= 4; ++chunks) {
        for (const LayerSplit& split :
             {LayerSplit{}, LayerSplit{.first_stage = 2}, LayerSplit{.first_stage = 4, .last_stage = 4},
              LayerSplit{.counts_embedding = true}, LayerSplit{.counts_embedding = true, .counts_loss = true}}) {
          const Layout layout{.pipeline = pipeline, .chunks = chunks, .split = split};
          if (!layer_split_problem(layout, layers).empty()) continue;
          ++accepted;
          int64_t next = 0;
          for (int64_t chunk = 0; chunk < chunks; ++chunk) {
            for (int64_t stage = 0; stage < pipeline; ++stage) {
              const Interval held = layers_of(layout, layers, {stage, chunk});
              ASSERT_EQ(held.begin, next) << to_string(layout) << ", " << layers << " layers";
              ASSERT_GE(held.size(), 0);
              for (int64_t layer = held.begin; layer < held.end; ++layer)
                ASSERT_EQ(home_of_layer(layout, layers, layer), (Home{stage, chunk}));
              next = held.end;
            }
          }
          ASSERT_EQ(next, layers);
        }
      }
    }
  }
  EXPECT_GT(accepted, 300);
}

TEST(LayerSplit, SaysWhatIsWrong) {
  EXPECT_NE(layer_split_problem({.pipeline = 8, .chunks = 8}, 126), "");
  EXPECT_NE(layer_split_problem({.pipeline = 4, .split = {.first_stage = 5}}, 22), "");
  EXPECT_NE(layer_split_problem({.pipeline = 2, .split = {.first_stage = 5, .last_stage = 5}}, 12), "");
  EXPECT_NE(layer_split_problem({.pipeline = 2, .chunks = 2, .split = {.first_stage = 3}}, 8), "");
  EXPECT_NE(layer_split_problem({.pipeline = 2, .split = {.first_stage = 3, .counts_loss = true}}, 8), "");
  EXPECT_NE(layer_split_problem({.pipeline = 1, .split = {.first_stage = 3}}, 8), "");
}

}  // namespace
}  // namespace megalith::parallel
