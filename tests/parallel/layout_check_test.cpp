#include "parallel/layout_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipe_layouts.h"

namespace megalith::parallel::testing {
namespace {

using ::testing::HasSubstr;

const LayoutDemands kSmall{.ranks = 8,
                           .layers = 12,
                           .heads = 12,
                           .kv_heads = 4,
                           .ffn = 3072,
                           .padded_vocabulary = 50304,
                           .length = 1024,
                           .micro_batch = 1,
                           .global_batch = 32};

std::string refusal(const Layout& layout, const LayoutDemands& demands) {
  try {
    check_layout(layout, demands);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::user);
    return error.what();
  }
  return "";
}

TEST(LayoutCheck, AcceptsTheRecipes) {
  for (const RecipeLayout& recipe : recipe_layouts()) {
    EXPECT_EQ(refusal(recipe.layout, demands_of(recipe.model, recipe.layout, recipe.micro_batches)), "") << recipe.name;
  }
}

TEST(LayoutCheck, NamesTheReasonAndWhatWouldWork) {
  const std::string text = refusal({.tensor = 8, .data = 1}, kSmall);
  EXPECT_THAT(text, HasSubstr("tensor 8 does not divide 12 attention heads"));
  EXPECT_THAT(text, HasSubstr("tensor 4 x pipeline 1 x context 1 x data 2"));
}

TEST(LayoutCheck, RefusesWhatDoesNotFit) {
  EXPECT_THAT(refusal({.tensor = 4, .pipeline = 3}, kSmall), HasSubstr("takes 12 ranks"));
  EXPECT_THAT(refusal({.tensor = 2, .data = 2}, kSmall), HasSubstr("use data 4"));
  EXPECT_THAT(refusal({.tensor = 6, .data = 1}, kSmall), HasSubstr("key-value heads"));
  EXPECT_THAT(refusal({.tensor = 16}, kSmall), HasSubstr("more than the 12 attention heads"));
  EXPECT_THAT(refusal({.pipeline = 8}, kSmall), HasSubstr("12 layers cannot be cut into 8 equal chunks"));
  EXPECT_THAT(refusal({.pipeline = 0}, kSmall), HasSubstr("at least 1"));
  EXPECT_THAT(refusal({.pipeline = 2, .data = 4, .shards_weights = true}, kSmall),
              HasSubstr("sharded weights are for pipeline 1"));
}

TEST(LayoutCheck, RefusesTooFewMicroBatchesToInterleave) {
  LayoutDemands demands = kSmall;
  demands.global_batch = 6;
  const std::string text = refusal({.pipeline = 4, .chunks = 3, .data = 2}, demands);
  EXPECT_THAT(text, HasSubstr("3 micro batches are too few to interleave 3 chunks on each of 4 stages"));
  EXPECT_EQ(refusal({.pipeline = 4, .data = 2}, demands), "");
}

TEST(LayoutCheck, RefusesContextsThatDoNotDivide) {
  LayoutDemands demands = kSmall;
  demands.length = 1028;
  EXPECT_THAT(refusal({.context = 8}, demands), HasSubstr("use a multiple of 16"));
}

TEST(LayoutCheck, OffersToCountEmbeddingAndLoss) {
  const Transformer model = llama3_405b();
  const Layout layout{.tensor = 8, .pipeline = 8, .chunks = 8};
  EXPECT_THAT(refusal(layout, demands_of(model, layout, 16)),
              HasSubstr("tensor 8 x pipeline 8 (8 chunks) x context 1 x data 1, embedding and loss counted as layers"));
}

TEST(LayoutCheck, NamesAnotherNumberOfRanks) {
  LayoutDemands demands = kSmall;
  demands.ranks = 11;
  EXPECT_THAT(refusal({.data = 11}, demands), HasSubstr("no layout works on 11 ranks; on 12:"));
}

TEST(LayoutCheck, WhatItOffersWorks) {
  LayoutDemands demands = kSmall;
  for (demands.ranks = 1; demands.ranks <= 24; ++demands.ranks) {
    for (const Layout& layout : nearest_layouts({.tensor = 5, .pipeline = 5, .chunks = 5}, demands, 5)) {
      EXPECT_TRUE(layout_problems(layout, demands).empty()) << to_string(layout);
    }
  }
}

}  // namespace
}  // namespace megalith::parallel::testing
