#include "ops/step_scalars.h"

#include <numeric>

#include "ops/cases/op_case.h"

namespace megalith::ops::testing {

namespace {

OpCase weigh_step_case(double total) {
  return {.operation = "weigh_step",
          .shape = fmt::format("a total weight of {}", total),
          .run =
              [](Stream& stream, DType, const Named& in) {
                const Placed<StepScalars> scalars(StepScalars{});
                const Placed<double> total_weight(0.0);
                set_step_scalars(stream, {.scalars = scalars.data(), .values = {.step = 5, .gradient_scale = 3.0}});
                set_number(stream, {.number = total_weight.data(), .value = in.at("total")[0]});
                weigh_step(stream, {.scalars = scalars.data(), .total_weight = total_weight.data()});
                const StepScalars values = scalars.value();
                return Named{{"step", {static_cast<double>(values.step)}}, {"gradient_scale", {values.gradient_scale}}};
              },
          .inputs =
              [total] {
                return Named{{"total", {total}}};
              },
          .expected =
              [](const Named& in) {
                const double weight = in.at("total")[0];
                return Named{{"step", {5.0}}, {"gradient_scale", {weight == 0.0 ? 0.0 : 1.0 / weight}}};
              },
          .is_exact = true};
}

// On a GPU, x is in the main dtype.
OpCase sum_case(int64_t elements, bool adds) {
  return {.operation = "sum",
          .shape = fmt::format("{} elements{}", elements, adds ? ", added" : ""),
          .run =
              [adds](Stream& stream, DType dtype, const Named& in) {
                const Buffer x = vector_of(main_dtype(dtype), in.at("x"));
                const Buffer total = vector_of(DType::f64, {7.0});
                sum(stream, {.x = x.vector(), .total = total.vector(), .adds = adds});
                return Named{{"total", total.values()}};
              },
          .inputs =
              [elements] {
                return Named{{"x", random_values(elements, 1)}};
              },
          .expected =
              [adds](const Named& in) {
                return Named{{"total", {std::accumulate(in.at("x").begin(), in.at("x").end(), adds ? 7.0 : 0.0)}}};
              }};
}

}  // namespace

OpCases step_scalars_cases(Size size) {
  if (size == Size::large) return {sum_case(32768, true)};
  OpCases cases;
  for (const double total : {48.0, 0.0}) cases.push_back(weigh_step_case(total));
  for (const int64_t elements : {1, 7, 1000, 5000}) {
    for (const bool adds : {false, true}) cases.push_back(sum_case(elements, adds));
  }
  return cases;
}

}  // namespace megalith::ops::testing
