#include "ops/norm.h"

#include <cmath>

#include "ops/cases/norm.h"
#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

TEST(Norm, VarianceSurvivesALargeMean) {
  const NormCase c{NormKind::layer_norm, 1, 256, 0};
  Named in = inputs_of(c);
  for (size_t i = 0; i < in.at("x").size(); ++i) in.at("x")[i] = 4096.0 + static_cast<double>(i % 2);
  const Named exact = naive_forward(c)(in);
  for (const Named& out : run_everywhere(run_forward(c), DType::f32, in)) {
    EXPECT_LT(relative_error(out.at("rstd"), exact.at("rstd")), 1e-5);
  }
}

TEST(Norm, NanStaysInItsRow) {
  const NormCase c{NormKind::rms_norm, 2, 40, 0};
  Named in = inputs_of(c);
  in.at("x")[3] = NAN;
  for (const Named& out : run_everywhere(run_forward(c), DType::f32, in)) {
    EXPECT_TRUE(std::isnan(out.at("y")[0]) && std::isnan(out.at("y")[39]));
    EXPECT_FALSE(std::isnan(out.at("y")[40]));
  }
}

TEST(Norm, RefusesWhatBreaksTheContract) {
  ThreadPool pool(1);
  Stream stream(pool);
  const Buffer x(DType::f32, 4, 8), weight(DType::f32, 1, 8), rstd(DType::f32, 1, 4);
  expect_refused([&] {  // a LayerNorm without a place for its means
    norm_forward(stream, {.x = x.tensor(), .weight = weight.vector(), .y = x.tensor(), .rstd = rstd.vector()});
  });
  expect_refused([&] {  // no scratch
    norm_backward(stream, {.kind = NormKind::rms_norm,
                           .dy = x.tensor(),
                           .x = x.tensor(),
                           .weight = weight.vector(),
                           .rstd = rstd.vector(),
                           .dx = x.tensor(),
                           .dweight = weight.vector()});
  });
}

}  // namespace
}  // namespace megalith::ops::testing
