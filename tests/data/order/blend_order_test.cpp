#include "data/order/blend_order.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "data/data_testing.h"
#include "data/order/blend.h"

namespace megalith::data {
namespace {

// The rule as Megatron's helpers state it, one dataset after the other for every sample.
std::vector<BlendEntry> plain_rule(const std::vector<double>& weights, int64_t count,
                                   const std::vector<int64_t>& limits = {}) {
  std::vector<int64_t> taken(weights.size(), 0);
  std::vector<BlendEntry> entries;
  for (int64_t i = 0; i < count; ++i) {
    const double step = std::max(static_cast<double>(i), 1.0);
    double largest = std::numeric_limits<double>::lowest();
    size_t best = 0;
    for (size_t d = 0; d < weights.size(); ++d) {
      if (!limits.empty() && taken[d] == limits[d]) continue;
      const volatile double share = weights[d] * step;  // rounded before the difference is taken
      const double error = share - static_cast<double>(taken[d]);
      if (error > largest) {
        largest = error;
        best = d;
      }
    }
    entries.push_back({static_cast<int32_t>(best), taken[best]});
    ++taken[best];
  }
  return entries;
}

std::vector<BlendEntry> entries_of(BlendOrder& order, int64_t count) {
  std::vector<BlendEntry> entries(static_cast<size_t>(count));
  order.next(entries);
  return entries;
}

void expect_plain(const std::vector<double>& raw, int64_t count) {
  const std::vector<double> weights = normalised(raw);
  BlendOrder order(weights);
  const auto expected = plain_rule(weights, count);
  const auto got = entries_of(order, count);
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(got[i].dataset, expected[i].dataset) << "sample " << i << " of " << raw.size() << " datasets";
    ASSERT_EQ(got[i].sample, expected[i].sample) << "sample " << i;
  }
}

TEST(BlendOrder, FollowsThePlainRuleForManyWeights) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  for (int trial = 0; trial < 120; ++trial) {
    std::vector<double> weights(1 + random() % 200);
    const int kind = trial % 6;
    for (double& weight : weights) {
      if (kind == 0) weight = 1.0;                                                // all equal
      if (kind == 1) weight = uniform(random) + 1e-3;                             // anything
      if (kind == 2) weight = std::pow(10.0, -9.0 * uniform(random));             // tiny ones among large ones
      if (kind == 3) weight = static_cast<double>(1 + random() % 3);              // a few values: many ties
      if (kind == 4) weight = 1.0 + 1e-12 * uniform(random);                      // almost equal
      if (kind == 5) weight = 1.0 + 0x1p-52 * static_cast<double>(random() % 4);  // equal but for rounding
    }
    expect_plain(weights, 2000);
    if (HasFatalFailure()) return;
  }
}

TEST(BlendOrder, FollowsThePlainRuleForThousandsOfDatasets) {
  std::mt19937_64 random(2);
  std::vector<double> weights(2400);
  for (double& weight : weights) weight = static_cast<double>(400000 + random() % 200);
  expect_plain(weights, 20000);
  for (double& weight : weights) weight = std::pow(static_cast<double>(1 + random() % 1000), 2.0);
  expect_plain(weights, 20000);
  expect_plain(std::vector<double>(2400, 1.0), 20000);
}

TEST(BlendOrder, FollowsThePlainRuleFarFromTheStart) {
  const std::vector<double> weights = normalised(std::vector<double>{0.37, 0.21, 1e-7, 0.42, 0.42});
  BlendOrder order(weights);
  for (int i = 0; i < 10; ++i) entries_of(order, 100000);
  std::vector<int64_t> taken = order.taken();
  const auto got = entries_of(order, 5000);
  for (int64_t i = 0; i < 5000; ++i) {
    const double step = static_cast<double>(1000000 + i);
    size_t best = 0;
    for (size_t d = 1; d < weights.size(); ++d) {
      if (weights[d] * step - static_cast<double>(taken[d]) > weights[best] * step - static_cast<double>(taken[best])) {
        best = d;
      }
    }
    ASSERT_EQ(got[static_cast<size_t>(i)], (BlendEntry{static_cast<int32_t>(best), taken[best]}));
    ++taken[best];
  }
}

TEST(BlendOrder, ContinuesWhereItIsPut) {
  std::mt19937_64 random(3);
  std::vector<double> raw(50);
  for (double& weight : raw) weight = static_cast<double>(1 + random() % 20);
  const std::vector<double> weights = normalised(raw);
  BlendOrder whole(weights);
  BlendOrder moved(weights);
  for (int i = 0; i < 20; ++i) {
    entries_of(whole, 137);
    moved.seek(whole.position(), whole.taken());
    EXPECT_EQ(moved.position(), whole.position());
    EXPECT_EQ(moved.taken(), whole.taken());
    EXPECT_EQ(entries_of(moved, 300), [&] {
      BlendOrder again(weights);
      entries_of(again, whole.position());
      return entries_of(again, 300);
    }());
  }
  std::vector<int64_t> wrong = whole.taken();
  ++wrong[0];
  expect_error(ErrorKind::data, {"cannot have taken"}, [&] { moved.seek(whole.position(), wrong); });
}

TEST(BlendOrder, ExhaustsEachDatasetOnceARound) {
  std::mt19937_64 random(4);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<int64_t> limits(1 + random() % 60);
    int64_t total = 0;
    for (int64_t& limit : limits) {
      limit = 1 + static_cast<int64_t>(random() % (trial % 2 == 0 ? 3 : 100));
      total += limit;
    }
    std::vector<double> weights;
    for (const int64_t limit : limits) weights.push_back(static_cast<double>(limit) / static_cast<double>(total));
    auto expected = plain_rule(weights, total, limits);
    BlendOrder order(weights, limits);
    EXPECT_EQ(entries_of(order, total), expected);
    BlendOrder moved(weights, limits);
    moved.seek(order.position(), order.taken());
    for (BlendEntry& entry : expected) entry.sample += limits[static_cast<size_t>(entry.dataset)];
    EXPECT_EQ(entries_of(order, total), expected);
    EXPECT_EQ(entries_of(moved, total), expected);
    EXPECT_EQ(moved.position(), 2 * total);
  }
}

}  // namespace
}  // namespace megalith::data
