#include "ops/vocabulary/embedding.h"

#include "ops/cases/embedding.h"
#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

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
    const EmbeddingCase c{1, std::ssize(ids), std::ssize(lengths) + 3, 20, 0, true};
    Named in = inputs_of(c);
    in["ids"] = shuffled;
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
  const EmbeddingCase c{3, 50, 11, 136, 0, true};
  Named in = inputs_of(c);
  for (int64_t row = 0; row < c.batch * c.length; ++row) {
    in["given_positions"].push_back(static_cast<double>(row * row % 7));
  }
  const Reference reference = [c](const Named& inputs) {
    Named out = run_on(1, run_backward(c), DType::f64, inputs);
    Values expected(static_cast<size_t>(c.position_rows() * c.cols));
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
