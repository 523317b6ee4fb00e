#include <optional>

#include "core/device.h"
#include "ops/cuda_attention_run.h"
#include "ops/op_test.h"

// The three paths of attention on a GPU, each against the CPU in double from the same bf16 values.

namespace megalith::ops::testing {
namespace {

using cuda::AttentionPath;
using Case = AttentionCase;

constexpr double kToleranceF32 = 1e-5;
constexpr double kToleranceBf16 = 2e-2;

const std::vector<Case> kPlainCases = {{2, 128, 128, 4, 4, 64},    {1, 200, 200, 4, 2, 64}, {2, 257, 257, 2, 1, 128},
                                       {1, 1024, 1024, 2, 2, 128}, {1, 640, 640, 8, 2, 64}, {1, 300, 300, 2, 2, 80},
                                       {1, 192, 192, 3, 1, 96},    {1, 130, 130, 2, 2, 40}, {3, 1000, 1000, 4, 2, 64},
                                       {1, 2048, 2048, 4, 1, 128}, {2, 32, 32, 8, 2, 32}};
const std::vector<Case> kDropoutCases = {{2, 128, 128, 2, 2, 64, 0.1},
                                         {1, 300, 300, 4, 2, 128, 0.2},
                                         {2, 131, 131, 3, 1, 64, 0.1},  // head * keys is no multiple of 4
                                         {1, 1000, 1000, 2, 1, 80, 0.1}};
const std::vector<Case> kDocumentCases = {{2, 256, 256, 2, 1, 64, 0.0, 40},
                                          {1, 1000, 1000, 2, 2, 128, 0.0, 300},
                                          {1, 500, 500, 4, 2, 96, 0.1, 7},
                                          {2, 1024, 1024, 2, 1, 64, 0.1, 1000}};
const std::vector<Case> kBoundsCases = {{2, 256, 256, 2, 1, 64, 0.0, 1000, 2},     // a sample is one document
                                        {2, 256, 256, 2, 2, 64, 0.0, 256, 8},      // cut elsewhere in each sample
                                        {2, 256, 256, 4, 1, 64, 0.0, 40, 16},      // many short ones
                                        {1, 500, 500, 4, 2, 96, 0.0, 7, 100},      // shorter than any tile
                                        {1, 1000, 1000, 2, 2, 128, 0.0, 300, 64},  // room for many more
                                        {3, 777, 777, 4, 1, 128, 0.0, 130, 32},
                                        {1, 2048, 2048, 8, 2, 128, 0.0, 600, 4}};
const std::vector<Case> kOffsetCases = {
    {2, 1, 300, 4, 2, 64}, {1, 5, 261, 2, 2, 128, 0.3}, {1, 140, 1000, 4, 1, 64}, {1, 128, 256, 2, 2, 80, 0.0, 100}};
// The last queries of a sample, as cuDNN takes them.
const std::vector<Case> kTailCases = {
    {1, 128, 256, 2, 2, 64}, {2, 100, 300, 4, 2, 64}, {1, 192, 1000, 4, 1, 128}, {1, 64, 2048, 8, 2, 128}};
// Queries and heads from somewhere in a sample.
const std::vector<Case> kPlacedCases = {
    {.batch = 2,
     .queries = 70,
     .keys = 300,
     .heads = 4,
     .kv_heads = 2,
     .dim = 64,
     .dropout = 0.2,
     .unseen = 100,
     .head_offset = 4,
     .dropout_keys = 512},
    {.batch = 1, .queries = 130, .keys = 700, .heads = 2, .kv_heads = 1, .dim = 128, .unseen = 333},
    {.batch = 1,
     .queries = 200,
     .keys = 500,
     .heads = 2,
     .kv_heads = 2,
     .dim = 80,
     .dropout = 0.1,
     .document = 90,
     .unseen = 64,
     .head_offset = 3,
     .dropout_keys = 501},  // no channel of a head's first key is a multiple of 4
    {.batch = 2,
     .queries = 65,
     .keys = 65,
     .heads = 3,
     .kv_heads = 3,
     .dim = 96,
     .dropout = 0.1,
     .head_offset = 5,
     .dropout_keys = 130},
    {.batch = 1,  // the first keys are seen by no query
     .queries = 100,
     .keys = 260,
     .heads = 2,
     .kv_heads = 1,
     .dim = 64,
     .document = 30,
     .unseen = 10}};
const std::vector<Case> kOddCases = {
    {1, 2, 2, 1, 1, 64}, {2, 70, 70, 2, 1, 5, 0.1, 9}, {1, 100, 100, 2, 2, 160}, {1, 90, 90, 2, 1, 36, 0.2}};

std::vector<Case> join(std::initializer_list<std::vector<Case>> lists) {
  std::vector<Case> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

void expect_close(const Named& actual, const Named& expected, double tolerance) {
  for (const auto& [name, values] : expected) {
    const double error = relative_error(actual.at(name), values);
    EXPECT_TRUE(error <= tolerance) << name << ": relative error " << error;
  }
}

class CudaAttention : public ::testing::Test {
 protected:
  void SetUp() override {
    if (find_accelerators().empty()) GTEST_SKIP() << "there is no GPU here";
    stream_.emplace(pool_, Device::cuda);
  }

  void expect_path(AttentionPath path, DType dtype, const std::vector<Case>& cases, bool deterministic = true) {
    for (const Case& c : cases) {
      SCOPED_TRACE(describe(c));
      const Named actual = GpuAttention(*stream_, c, dtype).run(&path, deterministic);
      if (path == AttentionPath::cudnn && actual.empty()) {
        fmt::print("cuDNN refuses {} (deterministic: {})\n", describe(c), deterministic);
        continue;
      }
      expect_close(actual, expected_of(c), dtype == DType::bf16 ? kToleranceBf16 : kToleranceF32);
    }
  }

  ThreadPool pool_{2};
  std::optional<Stream> stream_;
};

TEST_F(CudaAttention, CudnnMatchesTheCpu) {
  const auto cases = join({kPlainCases, kTailCases});
  expect_path(AttentionPath::cudnn, DType::bf16, cases, false);
  expect_path(AttentionPath::cudnn, DType::bf16, cases, true);
}

TEST_F(CudaAttention, CudnnFindsDocumentsByTheirBounds) {
  expect_path(AttentionPath::cudnn, DType::bf16, kBoundsCases, false);
}

TEST_F(CudaAttention, TensorCoresMatchTheCpu) {
  const auto cases = join({kPlainCases, kDropoutCases, kDocumentCases, kOffsetCases, kTailCases, kPlacedCases});
  expect_path(AttentionPath::tensor_cores, DType::bf16, cases, true);
  expect_path(AttentionPath::tensor_cores, DType::bf16, cases, false);
}

TEST_F(CudaAttention, GenericKernelMatchesTheCpu) {
  const auto cases =
      join({kPlainCases, kDropoutCases, kDocumentCases, kOffsetCases, kTailCases, kPlacedCases, kOddCases});
  expect_path(AttentionPath::generic, DType::f32, cases);
  expect_path(AttentionPath::generic, DType::bf16, cases);
}

TEST_F(CudaAttention, TheChosenPathMatchesTheCpu) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Case& c : join({kPlainCases, kDropoutCases, kDocumentCases, kBoundsCases, kOffsetCases, kTailCases,
                               kPlacedCases, kOddCases})) {
      for (const bool deterministic : {true, false}) {
        SCOPED_TRACE(fmt::format("{} {} deterministic {}", describe(c), name_of(dtype), deterministic));
        expect_close(GpuAttention(*stream_, c, dtype).run(nullptr, deterministic), expected_of(c),
                     dtype == DType::bf16 ? kToleranceBf16 : kToleranceF32);
      }
    }
  }
}

TEST_F(CudaAttention, DeterministicBackwardRepeatsBitForBit) {
  for (const Case& c : join({kPlainCases, kDropoutCases, kDocumentCases, kBoundsCases, kTailCases, kPlacedCases})) {
    SCOPED_TRACE(describe(c));
    const Named first = GpuAttention(*stream_, c, DType::bf16).run(nullptr, true);
    const Named second = GpuAttention(*stream_, c, DType::bf16).run(nullptr, true);
    EXPECT_EQ(first, second);
  }
}

TEST_F(CudaAttention, RefusesWhatBreaksTheContract) {
  const Case c{2, 64, 64, 4, 2, 64};
  GpuAttention gpu(*stream_, c, DType::bf16);
  const auto with = [&](const std::function<void(AttentionForward&)>& change) {
    AttentionForward args = gpu.tensors().forward(c);
    change(args);
    return [args, this] { attention_forward(*stream_, args); };
  };
  EXPECT_NO_THROW(with([](AttentionForward&) {})());
  expect_refused(with([](AttentionForward& args) { args.query_offset = 1; }));
  expect_refused(with([](AttentionForward& args) { args.kv_heads = 3; }));
  expect_refused(with([](AttentionForward& args) { args.batch = 5; }));
  expect_refused(with([](AttentionForward& args) { args.scratch = args.scratch.slice_cols(0, 100); }));
  expect_refused(with([](AttentionForward& args) {
    args.dropout.probability = 0.1;
    args.dropout.step = nullptr;
  }));
  expect_refused(with([](AttentionForward& args) { args.log_sum_exp = args.out; }));
  expect_refused(with([](AttentionForward& args) { args.head_offset = -1; }));
  expect_refused(with([](AttentionForward& args) { args.dropout_keys = 63; }));
}

}  // namespace
}  // namespace megalith::ops::testing
