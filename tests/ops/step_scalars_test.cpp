#include "ops/step_scalars.h"

#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

Runner weigh(double total) {
  return [total](Stream& stream, DType, const Named&) {
    const Placed<StepScalars> scalars(StepScalars{});
    const Placed<double> total_weight(total);
    set_step_scalars(stream, {.scalars = scalars.data(), .values = {.step = 5, .gradient_scale = 3.0}});
    weigh_step(stream, {.scalars = scalars.data(), .total_weight = total_weight.data()});
    const StepScalars values = scalars.value();
    return Named{{"step", {static_cast<double>(values.step)}}, {"gradient_scale", {values.gradient_scale}}};
  };
}

TEST(StepScalars, TheGradientScaleIsOneOverTheWeight) {
  for (const Named& out : run_everywhere(weigh(48.0), DType::f32, {})) {
    EXPECT_EQ(out.at("gradient_scale")[0], 1.0 / 48.0);
    EXPECT_EQ(out.at("step")[0], 5.0);
  }
}

TEST(StepScalars, WhereNoTokenCountsItIsZero) {
  for (const Named& out : run_everywhere(weigh(0.0), DType::f32, {})) EXPECT_EQ(out.at("gradient_scale")[0], 0.0);
}

TEST(StepScalars, ANumberIsSet) {
  const Runner set = [](Stream& stream, DType, const Named&) {
    const Placed<double> number(7.0);
    set_number(stream, {.number = number.data(), .value = 1.0 / 3.0});
    return Named{{"number", {number.value()}}};
  };
  for (const Named& out : run_everywhere(set, DType::f32, {})) EXPECT_EQ(out.at("number")[0], 1.0 / 3.0);
}

}  // namespace
}  // namespace megalith::ops::testing
