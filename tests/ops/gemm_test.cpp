#include "ops/gemm.h"

#include <cmath>

#include "ops/cases/gemm.h"
#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

TEST(Gemm, AccumulatesBf16ProductsInMainDtype) {
  const GemmCase c{40, 50, 2000, true, false, 1.0F, false, 0, true};
  const Named in = inputs_of(c);
  const Named exact = naive_gemm(c)(in);
  EXPECT_LT(relative_error(run_on(2, run_gemm(c), DType::bf16, in).at("c"), exact.at("c")), 1e-5);
}

TEST(Gemm, NanInAnInputIsSeen) {
  const GemmCase c{5, 6, 7};
  Named in = inputs_of(c);
  in.at("a")[0] = NAN;
  const Named out = run_on(1, run_gemm(c), DType::f32, in);
  EXPECT_TRUE(std::isnan(out.at("c")[0]));
  EXPECT_FALSE(std::isnan(out.at("c").back()));
}

TEST(Gemm, RefusesWhatBreaksTheContract) {
  ThreadPool pool(1);
  Stream stream(pool);
  const Buffer square(DType::f32, 4, 4), result(DType::f32, 4, 4), narrow(DType::bf16, 4, 4), wide(DType::f64, 4, 4);
  const auto with = [&](const std::function<void(Gemm&)>& change) {
    Gemm args{.a = square.tensor(), .b = square.tensor(), .c = result.tensor()};
    change(args);
    return [args, &stream] { gemm(stream, args); };
  };
  EXPECT_NO_THROW(with([](Gemm&) {})());
  expect_refused(with([](Gemm& args) { args.beta = 0.5F; }));
  expect_refused(with([](Gemm& args) { args.a = {}; }));
  expect_refused(with([&](Gemm& args) { args.c = narrow.tensor(); }));
  expect_refused(with([&](Gemm& args) { args.c = wide.tensor(); }));
  expect_refused(with([&](Gemm& args) {
    args.beta = 1.0F;
    args.addend = square.tensor();
  }));
  expect_refused(with([&](Gemm& args) { args.addend = result.tensor(); }));
}

}  // namespace
}  // namespace megalith::ops::testing
