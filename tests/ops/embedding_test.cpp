#include "ops/embedding.h"

#include "core/rng.h"
#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

struct Case {
  int64_t batch, length, vocabulary, cols, offset;
  bool positions;
  int64_t gap = 0;
  int64_t whole = 0;  // the vocabulary that the table is a part of; 0: it is the whole
  int64_t first_id = 0;

  bool is_part() const { return whole > 0; }
};
const std::vector<Case> kCases = {{1, 1, 1, 1, 0, false},
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

std::string describe(const Case& c) {
  return fmt::format("batch {} length {} vocabulary {} cols {}", c.batch, c.length, c.vocabulary, c.cols);
}

int64_t positions_of(const Case& c) {
  return c.offset + c.length + 1;
}

Runner run_forward(const Case& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    const Buffer ids = vector_of(DType::i32, in.at("ids"));
    const Buffer tokens(dtype, c.vocabulary, c.cols, c.gap, in.at("tokens"));
    const Buffer positions(dtype, positions_of(c), c.cols, c.gap, in.at("positions"));
    const Buffer out(dtype, c.batch * c.length, c.cols, c.gap);
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
    for (int64_t row = 0; row < c.batch * c.length; ++row) {
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

// Of the rows by their keys, as a GPU needs it.
class Ordered {
 public:
  Ordered(Stream& stream, const Buffer& given, int64_t limit)
      : keys_(DType::i32, 1, given.vector().elements()),
        rows_(DType::i32, 1, given.vector().elements()),
        scratch_(DType::i32, 1, row_order_scratch(stream.device(), given.vector().elements())) {
    order_rows(stream, {.given = given.vector(), .limit = limit, .order = order(), .scratch = scratch_.vector()});
  }
  RowOrder order() const { return {.keys = keys_.vector(), .rows = rows_.vector()}; }

 private:
  Buffer keys_, rows_, scratch_;
};

// With "given_positions" in the inputs: those of the rows, in place of positions along the sample.
Runner run_backward(const Case& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    const DType main = main_dtype(dtype);
    const Buffer ids = vector_of(DType::i32, in.at("ids"));
    const Buffer dout(dtype, c.batch * c.length, c.cols, c.gap, in.at("dout"));
    const Buffer tokens(main, c.vocabulary, c.cols, c.gap, Values(static_cast<size_t>(c.vocabulary * c.cols)));
    const Buffer positions(main, positions_of(c), c.cols, c.gap, Values(static_cast<size_t>(positions_of(c) * c.cols)));
    const Buffer scratch(DType::f32, 1, embedding_backward_scratch(stream.device(), c.batch * c.length, c.cols));
    const bool given = in.contains("given_positions");
    const Buffer row_positions = vector_of(DType::i32, given ? in.at("given_positions") : Values(1));
    const Ordered order(stream, ids, c.is_part() ? c.whole : c.vocabulary);
    const Ordered positions_order(stream, row_positions, positions_of(c));
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
  for (int64_t i = 0; i < c.batch * c.length; ++i) {
    ids.push_back(static_cast<double>(philox(5, {static_cast<uint32_t>(i), 0, 0, 0})[0] % vocabulary));
  }
  return {{"ids", ids},
          {"tokens", random_values(c.vocabulary * c.cols, 1)},
          {"positions", random_values(positions_of(c) * c.cols, 2)}};
}

TEST(Embedding, ForwardLooksUp) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(describe(c));
    expect_matches(run_forward(c), naive_forward(c), inputs_of(c));
  }
}

TEST(Embedding, GradientsMatchFiniteDifferences) {
  for (const Case& c : kCases) {
    if (c.offset > 0) continue;  // a generation's, which has no backward pass
    SCOPED_TRACE(describe(c));
    expect_gradients(run_forward(c), run_backward(c), inputs_of(c), "out");
  }
}

TEST(Embedding, BackwardAddsInEveryDtypeAndOnAnyThreads) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(describe(c));
    Named in = inputs_of(c);
    in["dout"] = random_values(c.batch * c.length * c.cols, 3);
    const Runner backward = run_backward(c);
    expect_matches(
        backward, [&](const Named& inputs) { return run_on(1, backward, DType::f64, inputs); }, in);
  }
}

// A GPU sums runs of equal ids, and long ones in parts that depend on where in the order they lie.
TEST(Embedding, BackwardAddsRunsOfAnyLengthAnywhere) {
  const std::vector<int64_t> lengths = {31, 32, 33, 1, 64, 65, 63, 2, 96, 97, 200, 1, 1, 1300, 5};
  for (const int64_t before : {0, 1, 2, 30, 31, 32, 33}) {
    SCOPED_TRACE(before);
    Values ids(static_cast<size_t>(before), 0.0);
    for (size_t i = 0; i < lengths.size(); ++i)
      ids.insert(ids.end(), static_cast<size_t>(lengths[i]), static_cast<double>(i + 1));
    constexpr size_t kFarFromOneAnother = 1009;  // a prime, so that every row comes once
    Values shuffled;
    for (size_t i = 0; i < ids.size(); ++i) shuffled.push_back(ids[i * kFarFromOneAnother % ids.size()]);
    const Case c{1, std::ssize(ids), std::ssize(lengths) + 3, 20, 0, true};
    Named in = inputs_of(c);
    in["ids"] = shuffled;
    in["dout"] = random_values(c.length * c.cols, 3);
    const Reference reference = [&](const Named& inputs) {
      Named out = run_on(1, run_backward(c), DType::f64, inputs);
      Values expected(static_cast<size_t>(c.vocabulary * c.cols));
      for (int64_t row = 0; row < c.length; ++row) {
        const auto id = static_cast<int64_t>(inputs.at("ids")[static_cast<size_t>(row)]);
        for (int64_t i = 0; i < c.cols; ++i) {
          expected[static_cast<size_t>(id * c.cols + i)] += inputs.at("dout")[static_cast<size_t>(row * c.cols + i)];
        }
      }
      out["dtokens"] = expected;
      return out;
    };
    expect_matches(run_backward(c), reference, in);
  }
}

TEST(Embedding, GivenPositionsAddToTheirRows) {
  const Case c{3, 50, 11, 136, 0, true};
  Named in = inputs_of(c);
  in["dout"] = random_values(c.batch * c.length * c.cols, 3);
  for (int64_t row = 0; row < c.batch * c.length; ++row) {
    in["given_positions"].push_back(static_cast<double>(row * row % 7));
  }
  const Reference reference = [c](const Named& inputs) {
    Named out = run_on(1, run_backward(c), DType::f64, inputs);
    Values expected(static_cast<size_t>(positions_of(c) * c.cols));
    for (int64_t row = 0; row < c.batch * c.length; ++row) {
      const auto position = static_cast<int64_t>(inputs.at("given_positions")[static_cast<size_t>(row)]);
      for (int64_t i = 0; i < c.cols; ++i) {
        expected[static_cast<size_t>(position * c.cols + i)] +=
            inputs.at("dout")[static_cast<size_t>(row * c.cols + i)];
      }
    }
    out["dpositions"] = expected;
    return out;
  };
  expect_matches(run_backward(c), reference, in);
}

TEST(Embedding, RefusesWhatBreaksTheContract) {
  ThreadPool pool(1);
  Stream stream(pool);
  const Buffer table(DType::f32, 5, 8), out(DType::f32, 3, 8), good = vector_of(DType::i32, {0, 4, 1});
  const Buffer beyond = vector_of(DType::i32, {0, 5, 1}), negative = vector_of(DType::i32, {0, -1, 1});
  for (const Buffer* ids : {&beyond, &negative}) {
    expect_refused([&] {
      embedding_forward(stream, {.ids = ids->vector(), .tokens_table = table.tensor(), .out = out.tensor()});
    });
    expect_refused([&] {
      embedding_backward(stream, {.dout = out.tensor(), .ids = ids->vector(), .tokens_gradient = table.tensor()});
    });
  }
  expect_refused([&] {  // more positions than the table has
    embedding_forward(stream, {.ids = good.vector(),
                               .tokens_table = table.tensor(),
                               .positions_table = table.tensor(),
                               .out = out.tensor(),
                               .length = 3,
                               .position_offset = 3});
  });
  expect_refused([&] {  // not from the first token on, and yet no part
    embedding_forward(stream,
                      {.ids = good.vector(), .tokens_table = table.tensor(), .out = out.tensor(), .first_id = 1});
  });
}

}  // namespace
}  // namespace megalith::ops::testing
