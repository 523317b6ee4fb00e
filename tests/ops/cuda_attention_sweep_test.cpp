#include <optional>
#include <random>

#include "core/device.h"
#include "ops/cuda_attention_run.h"
#include "ops/op_test.h"

// Attention on a GPU as training calls it, over lengths and head sizes on both sides of every tile, with NaN before and
// behind all of its memory: whatever a kernel reads beyond its tensors shows in the gradients.

namespace megalith::ops::testing {
namespace {

using Case = AttentionCase;

Case plain(int64_t length, int64_t dim) {
  return {.batch = 1, .queries = length, .keys = length, .heads = 2, .kv_heads = 2, .dim = dim};
}

// Batches, grouped queries, documents with and without bounds, and the last queries of a sample.
Case random_case(std::mt19937& random) {
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); };
  const int64_t length = 1 + below(700);
  Case c = plain(length, 8 * (1 + below(32)));
  c.batch = 1 + below(3);
  c.kv_heads = 1 + below(3);
  c.heads = c.kv_heads * (1 + below(4));
  switch (below(4)) {
    case 0:
      break;
    case 1:
      c.queries = 1 + below(length);
      break;
    case 2:
      c.document = 1 + below(length);
      break;
    case 3:
      c.document = 1 + below(length);
      c.room = c.batch * (length / c.document + 2);
      break;
  }
  return c;
}

std::vector<Case> random_cases() {
  constexpr int kCount = 300;
  std::mt19937 random(17);
  std::vector<Case> cases;
  for (int i = 0; i < kCount; ++i) cases.push_back(random_case(random));
  return cases;
}

// The gradients of few tokens are differences that vanish: as far from them as rounding takes values of size one.
void expect_close(const Named& actual, const Named& expected) {
  constexpr double kTolerance = 2e-2;
  constexpr double kLeastSize = 1e-2;
  for (const auto& [name, values] : expected) {
    const Values zeros(values.size(), 0.0);
    const double size = std::max(relative_error(values, zeros), kLeastSize * std::sqrt(values.size()));
    Values differences = actual.at(name);
    for (size_t i = 0; i < values.size(); ++i) differences[i] -= values[i];
    const double error = relative_error(differences, zeros) / size;
    EXPECT_TRUE(error <= kTolerance) << name << ": relative error " << error;
  }
}

class CudaAttentionSweep : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    if (find_accelerators().empty()) GTEST_SKIP() << "there is no GPU here";
    stream_.emplace(pool_, Device::cuda);
  }

  void check(const Case& c) {
    const Named expected = expected_of(c);
    for (const bool deterministic : {false, true}) {
      SCOPED_TRACE(fmt::format("{} deterministic {}", describe(c), deterministic));
      GpuAttention gpu(*stream_, c, DType::bf16);
      expect_close(gpu.run(nullptr, deterministic), expected);
      EXPECT_TRUE(gpu.is_intact());
    }
  }

 private:
  ThreadPool pool_{2};
  std::optional<Stream> stream_;
};

class CudaAttentionLengths : public CudaAttentionSweep {};
class CudaAttentionHeadSizes : public CudaAttentionSweep {};
class CudaAttentionMixture : public CudaAttentionSweep {};
class CudaAttentionGuarded : public CudaAttentionSweep {};

constexpr int64_t kLengthsOfOne = 13;
constexpr int64_t kMixturesOfOne = 20;

TEST_P(CudaAttentionLengths, MatchTheCpu) {
  for (int64_t length = GetParam(); length < GetParam() + kLengthsOfOne; ++length) {
    for (const int64_t dim : {64, 80, 128}) check(plain(length, dim));
  }
}
INSTANTIATE_TEST_SUITE_P(UpTo520, CudaAttentionLengths, ::testing::Range<int64_t>(1, 521, kLengthsOfOne));

TEST_P(CudaAttentionHeadSizes, MatchTheCpu) {
  for (const int64_t length : {63, 64, 65, 127, 128, 192, 320}) check(plain(length, GetParam()));
}
INSTANTIATE_TEST_SUITE_P(UpTo264, CudaAttentionHeadSizes, ::testing::Range<int64_t>(8, 265, 8));

TEST_P(CudaAttentionMixture, MatchesTheCpu) {
  const std::vector<Case> cases = random_cases();
  for (int64_t i = 0; i < kMixturesOfOne; ++i) check(cases[static_cast<size_t>(GetParam() + i)]);
}
INSTANTIATE_TEST_SUITE_P(Of300, CudaAttentionMixture, ::testing::Range<int64_t>(0, 300, kMixturesOfOne));

// Few enough for compute-sanitizer.
TEST_P(CudaAttentionGuarded, MatchesTheCpu) {
  const std::vector<Case> mixture = random_cases();
  for (const int64_t dim : {64, 80, 128}) check(plain(64 * (1 + GetParam()), dim));
  check(plain(63 + GetParam(), 8 * (1 + 3 * GetParam())));
  check(mixture[static_cast<size_t>(GetParam())]);
  check(mixture[static_cast<size_t>(GetParam() + 100)]);
}
INSTANTIATE_TEST_SUITE_P(Sixty, CudaAttentionGuarded, ::testing::Range<int64_t>(0, 10));

}  // namespace
}  // namespace megalith::ops::testing
