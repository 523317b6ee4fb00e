#include "ops/vocabulary/embedding.h"

#include "core/rng.h"
#include "ops/cases/embedding.h"
#include "ops/cases/row_order.h"

namespace megalith::ops::testing {

namespace {

using Case = EmbeddingCase;

const std::vector<Case> kSmall = {{1, 1, 1, 1, 0, false},
                                  {2, 3, 5, 7, 0, true, 2},
                                  {1, 1, 9, 16, 4, true},
                                  {3, 50, 11, 133, 0, true},
                                  {2, 70, 300, 257, 0, false, 1},
                                  {2, 200, 3, 264, 0, true},
                                  {1, 300, 1, 65, 0, false},
                                  {4, 65, 5000, 8, 0, true},
                                  {3, 50, 7, 133, 0, true, 0, 20, 5},
                                  {2, 70, 64, 257, 0, false, 1, 300, 256},
                                  {2, 33, 100, 64, 0, false, 0, 300},
                                  {1, 40, 8, 16, 0, true, 0, 8, 8},
                                  {3, 3000, 500, 8, 0, true}};
const std::vector<Case> kLarge = {{1, 2048, 50304, 768, 0, true}};

std::string describe(const Case& c) {
  return fmt::format("batch {} length {} vocabulary {} cols {}{}", c.batch, c.length, c.vocabulary, c.cols,
                     c.positions ? " positions" : "");
}

Runner run_forward(const Case& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    const Buffer ids = vector_of(DType::i32, in.at("ids"));
    const Buffer tokens(dtype, c.vocabulary, c.cols, c.gap, in.at("tokens"));
    const Buffer positions =
        c.positions ? Buffer(dtype, c.position_rows(), c.cols, c.gap, in.at("positions")) : Buffer(dtype, 0, 0);
    const Buffer out(dtype, c.rows(), c.cols, c.gap);
    embedding_forward(stream, {.ids = ids.vector(),
                               .tokens_table = tokens.tensor(),
                               .positions_table = c.positions ? positions.tensor() : Tensor(),
                               .out = out.tensor(),
                               .length = c.length,
                               .position_offset = c.offset,
                               .is_part = c.is_part(),
                               .first_id = c.first_id});
    return Named{{"out", out.values()}};
  };
}

Reference naive_forward(const Case& c) {
  return [c](const Named& in) {
    Values out;
    for (int64_t row = 0; row < c.rows(); ++row) {
      const auto id = static_cast<int64_t>(in.at("ids")[static_cast<size_t>(row)]) - c.first_id;
      const bool is_held = 0 <= id && id < c.vocabulary;
      for (int64_t i = 0; i < c.cols; ++i) {
        double value = is_held ? in.at("tokens")[static_cast<size_t>(id * c.cols + i)] : 0.0;
        if (c.positions) value += in.at("positions")[static_cast<size_t>((c.offset + row % c.length) * c.cols + i)];
        out.push_back(value);
      }
    }
    return Named{{"out", out}};
  };
}

}  // namespace

Runner run_backward(const Case& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    const DType main = main_dtype(dtype);
    const auto zeros = [&](int64_t rows) {
      return Buffer(main, rows, c.cols, c.gap, Values(static_cast<size_t>(rows * c.cols)));
    };
    const Buffer ids = vector_of(DType::i32, in.at("ids"));
    const Buffer dout(dtype, c.rows(), c.cols, c.gap, in.at("dout"));
    const Buffer tokens = zeros(c.vocabulary);
    const Buffer positions = zeros(c.positions ? c.position_rows() : 0);
    const Buffer scratch(DType::f32, 1, embedding_backward_scratch(stream.device(), c.rows(), c.cols));
    const OrderedRows order(stream, ids, c.rows(), c.is_part() ? c.whole : c.vocabulary);
    const bool given = in.contains("given_positions");
    const Buffer row_positions = vector_of(DType::i32, given ? in.at("given_positions") : Values());
    const OrderedRows positions_order(stream, row_positions, given ? c.rows() : 0, c.position_rows());
    embedding_backward(stream, {.dout = dout.tensor(),
                                .ids = ids.vector(),
                                .tokens_gradient = tokens.tensor(),
                                .positions_gradient = c.positions ? positions.tensor() : Tensor(),
                                .positions = given ? row_positions.vector() : Tensor(),
                                .order = order.order(),
                                .positions_order = given ? positions_order.order() : RowOrder(),
                                .length = c.length,
                                .is_part = c.is_part(),
                                .first_id = c.first_id,
                                .scratch = scratch.vector()});
    Named out{{"dtokens", tokens.values()}};
    if (c.positions) out["dpositions"] = positions.values();
    return out;
  };
}

Named inputs_of(const Case& c) {
  const int64_t vocabulary = c.is_part() ? c.whole : c.vocabulary;
  Values ids;
  for (int64_t i = 0; i < c.rows(); ++i) {
    ids.push_back(static_cast<double>(philox(5, {static_cast<uint32_t>(i), 0, 0, 0})[0] % vocabulary));
  }
  return {{"ids", ids},
          {"tokens", random_values(c.vocabulary * c.cols, 1)},
          {"positions", random_values(c.position_rows() * c.cols, 2)},
          {"dout", random_values(c.rows() * c.cols, 3)}};
}

OpCases embedding_cases(Size size) {
  OpCases cases;
  for (const Case& c : size == Size::small ? kSmall : kLarge) {
    const bool is_of_generation = c.offset > 0;  // which has no backward pass
    cases.push_back({.operation = "embedding_forward",
                     .shape = describe(c),
                     .run = run_forward(c),
                     .inputs = [c] { return inputs_of(c); },
                     .expected = naive_forward(c),
                     .backward = is_of_generation ? Runner() : run_backward(c),
                     .output = "out"});
    cases.push_back({.operation = "embedding_backward", .shape = describe(c), .run = run_backward(c), .inputs = [c] {
                       return inputs_of(c);
                     }});
  }
  return cases;
}

}  // namespace megalith::ops::testing
