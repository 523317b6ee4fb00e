#include <numeric>
#include <regex>
#include <set>

#include "expect_error.h"
#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/op_test.h"
#include "ops/vocabulary/embedding.h"

namespace megalith::ops::testing {
namespace {

enum class Outcome { refused, accepted, not_made };

// What becomes of a case of whose buffers one is not what was asked for. Only the contract of an operation refuses it:
// that it fails later does not count.
Outcome outcome_of(const OpCase& c, const Named& inputs, int buffer, Defect defect) {
  static const std::regex by_contract("internal error: [a-z_]+: .*");
  const DefectiveBuffer defective(buffer, defect);
  try {
    run_on(1, c.run, DType::f32, inputs);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal && std::regex_match(error.what(), by_contract)) return Outcome::refused;
  }
  return defective.was_made() ? Outcome::accepted : Outcome::not_made;
}

bool is_small(const Named& inputs) {
  constexpr size_t kMost = 5000;
  return std::accumulate(inputs.begin(), inputs.end(), size_t{0},
                         [](size_t sum, const auto& entry) { return sum + entry.second.size(); }) <= kMost;
}

// It has one tensor, or one twice.
bool takes_any_shape(const OpCase& c) {
  const bool is_over_its_only_input =
      c.operation == "dropout_add" && c.shape.ends_with(" over x") && c.shape.find("residual") == std::string::npos;
  const bool measures_only = c.operation == "quantize" && c.shape.ends_with("amax alone");
  return measures_only || c.operation == "fill" || c.operation == "normal_init" || c.operation == "sum" ||
         is_over_its_only_input;
}

TEST(Contract, RefusesEveryTensorOfAnotherTypeDeviceOrShape) {
  const std::set<std::string> takes_tiles = {"adamw", "gradient_norm"};  // which hold no tensors
  int refused = 0;
  for (const OpCase& c : all_cases(Size::small)) {
    if (takes_tiles.contains(c.operation)) continue;
    const Named inputs = c.inputs();
    if (!is_small(inputs)) continue;
    for (int buffer = 0; outcome_of(c, inputs, buffer, Defect::dtype) != Outcome::not_made; ++buffer) {
      SCOPED_TRACE(fmt::format("{} {}, buffer {}", c.operation, c.shape, buffer));
      EXPECT_EQ(outcome_of(c, inputs, buffer, Defect::dtype), Outcome::refused);
      EXPECT_EQ(outcome_of(c, inputs, buffer, Defect::device), Outcome::refused);
      EXPECT_TRUE(takes_any_shape(c) || outcome_of(c, inputs, buffer, Defect::rows) == Outcome::refused ||
                  outcome_of(c, inputs, buffer, Defect::cols) == Outcome::refused);
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
}

TEST(Contract, NamesTheOperationAndWhatIsWrong) {
  ThreadPool pool(1);
  Stream stream(pool);
  const Buffer x(DType::f32, 2, 8), narrow(DType::f32, 2, 7), other(DType::bf16, 2, 8);
  expect_error(ErrorKind::internal, {"gelu_forward: 'y' is (2, 7), not (2, 8)"},
               [&] { gelu_forward(stream, {.x = x.tensor(), .y = narrow.tensor()}); });
  expect_error(ErrorKind::internal, {"gelu_forward: 'y' holds bf16, not f32"},
               [&] { gelu_forward(stream, {.x = x.tensor(), .y = other.tensor()}); });
  Tensor elsewhere = x.tensor();
  elsewhere.device = Device::cuda;
  expect_error(ErrorKind::internal, {"gelu_forward: 'y' is not in the memory of the CPU"},
               [&] { gelu_forward(stream, {.x = x.tensor(), .y = elsewhere}); });
}

// A contract looks at no memory: it can be asked about a GPU that is not there.
Tensor on_gpu(DType dtype, Shape shape) {
  return Tensor(nullptr, dtype, shape, Device::cuda);
}

const Contract kOnGpu("this", Device::cuda, 1);

TEST(Contract, OnAGpuEmbeddingsNeedTheOrderOfTheirRowsAndScratch) {
  const int64_t rows = 40;
  const Tensor ids = on_gpu(DType::i32, {rows});
  EmbeddingBackward args{.dout = on_gpu(DType::bf16, {rows, 8}),
                         .ids = ids,
                         .tokens_gradient = on_gpu(DType::f32, {5, 8}),
                         .order = {.keys = ids, .rows = ids},
                         .scratch = on_gpu(DType::f32, {embedding_backward_scratch(Device::cuda, rows, 8)})};
  EXPECT_NO_THROW(check(kOnGpu, args));
  EmbeddingBackward without_scratch = args;
  without_scratch.scratch = {};
  expect_refused([&] { check(kOnGpu, without_scratch); });
  EmbeddingBackward without_order = args;
  without_order.order = {};
  expect_refused([&] { check(kOnGpu, without_order); });
  args.positions_gradient = on_gpu(DType::f32, {3, 8});
  args.positions = ids;
  expect_refused([&] { check(kOnGpu, args); });
  args.positions_order = args.order;
  EXPECT_NO_THROW(check(kOnGpu, args));
}

TEST(Contract, OnAGpuTheOrderOfRowsNeedsScratch) {
  const Tensor rows = on_gpu(DType::i32, {40});
  OrderRows args{.given = rows, .limit = 5, .order = {.keys = rows, .rows = rows}};
  expect_refused([&] { check(kOnGpu, args); });
  args.scratch = on_gpu(DType::i32, {row_order_scratch(Device::cuda, 40)});
  EXPECT_NO_THROW(check(kOnGpu, args));
}

TEST(Contract, ScratchOfAttentionIsThatOfTheDevice) {
  AttentionForward args{.q = on_gpu(DType::bf16, {64, 32}),
                        .k = on_gpu(DType::bf16, {64, 16}),
                        .v = on_gpu(DType::bf16, {64, 16}),
                        .out = on_gpu(DType::bf16, {64, 32}),
                        .log_sum_exp = on_gpu(DType::f32, {4, 32}),
                        .batch = 2,
                        .heads = 2,
                        .kv_heads = 1,
                        .scale = 0.25,
                        .scratch = {}};
  const int64_t elements = attention_scratch(Device::cuda, shape_of(args), 1);
  args.scratch = on_gpu(DType::f32, {elements});
  EXPECT_NO_THROW(check(kOnGpu, args));
  args.scratch = on_gpu(DType::f32, {elements - 1});
  expect_refused([&] { check(kOnGpu, args); });
}

}  // namespace
}  // namespace megalith::ops::testing
