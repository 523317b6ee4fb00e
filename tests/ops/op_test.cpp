#include "ops/op_test.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/device.h"
#include "expect_error.h"

namespace megalith::ops::testing {

namespace {

constexpr double kToleranceF64 = 1e-10;
constexpr double kToleranceF32 = 1e-5;
constexpr double kToleranceBf16 = 2e-2;
constexpr double kToleranceGradient = 1e-6;

double tolerance_of(DType dtype) {
  return dtype == DType::f64 ? kToleranceF64 : dtype == DType::f32 ? kToleranceF32 : kToleranceBf16;
}

double loss_of(const Runner& forward, const Named& inputs, const std::string& output, const Values& seed) {
  const Named outputs = run_in_double(forward, inputs);
  const Values& values = outputs.at(output);
  double loss = 0.0;
  for (size_t i = 0; i < values.size(); ++i) loss += values[i] * seed[i];
  return loss;
}

// The central difference of the loss along `direction` of one input.
double slope_of(const std::function<double(const Named&)>& loss, const Named& inputs, const std::string& name,
                const Values& direction) {
  constexpr double kStep = 1e-5;
  const auto moved = [&](double step) {
    Named changed = inputs;
    for (size_t i = 0; i < direction.size(); ++i) changed.at(name)[i] += step * direction[i];
    return loss(changed);
  };
  return (moved(kStep) - moved(-kStep)) / (2.0 * kStep);
}

}  // namespace

double relative_error(const Values& actual, const Values& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double difference = 0.0;
  double norm = 0.0;
  for (size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return norm == 0.0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

Named run_on(int threads, const Runner& runner, DType dtype, const Named& inputs) {
  ThreadPool pool(threads);
  Stream stream(pool);
  const MadeOn made_on(stream);
  return runner(stream, dtype, inputs);
}

bool has_gpu() {
  static const bool found = !find_accelerators().empty();
  return found;
}

Named run_on_gpu(const Runner& runner, DType dtype, const Named& inputs) {
  ThreadPool pool(1);
  Stream stream(pool, Device::cuda);
  const MadeOn made_on(stream);
  Named outputs = runner(stream, dtype, inputs);
  stream.wait();
  return outputs;
}

std::vector<Named> run_everywhere(const Runner& runner, DType dtype, const Named& inputs) {
  std::vector<Named> results{run_on(1, runner, dtype, inputs)};
  if (has_gpu()) results.push_back(run_on_gpu(runner, dtype, inputs));
  return results;
}

namespace {

// A tolerance of 0 asks for the very same values.
void expect_close(const Named& actual, const Named& expected, double tolerance, const std::string& where) {
  for (const auto& [name, values] : expected) {
    const double error = relative_error(actual.at(name), values);
    EXPECT_TRUE(error <= tolerance) << name << " in " << where << ": relative error " << error;
  }
}

void expect_identical(const Named& actual, const Named& expected, DType dtype, const std::string& between) {
  for (const auto& [name, values] : expected) {
    ASSERT_EQ(actual.at(name).size(), values.size());
    EXPECT_EQ(std::memcmp(actual.at(name).data(), values.data(), values.size() * sizeof(double)), 0)
        << name << " in " << name_of(dtype) << " differs between " << between;
  }
}

void expect_same_on_any_threads(const Runner& runner, const Named& inputs) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Named one = run_on(1, runner, dtype, inputs);
    for (const int threads : {2, 3}) {
      expect_identical(run_on(threads, runner, dtype, inputs), one, dtype, fmt::format("1 and {} threads", threads));
    }
  }
}

void expect_matches(const Runner& runner, const Reference& reference, const Named& inputs, bool is_exact) {
  const Named expected = reference(inputs);
  const auto tolerance = [&](DType dtype) { return is_exact ? 0.0 : tolerance_of(dtype); };
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    expect_close(run_on(2, runner, dtype, inputs), expected, tolerance(dtype),
                 fmt::format("{} on the CPU", name_of(dtype)));
  }
  expect_same_on_any_threads(runner, inputs);
  if (!has_gpu()) return;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Named first = run_on_gpu(runner, dtype, inputs);
    expect_close(first, expected, tolerance(dtype), fmt::format("{} on the GPU", name_of(dtype)));
    expect_identical(run_on_gpu(runner, dtype, inputs), first, dtype, "two runs on the GPU");
  }
}

}  // namespace

void expect_matches(const Runner& runner, const Reference& reference, const Named& inputs) {
  expect_matches(runner, reference, inputs, false);
}

void expect_matches(const OpCase& c) {
  const Reference in_double = [&](const Named& inputs) { return run_in_double(c.run, inputs); };
  expect_matches(c.run, c.expected ? c.expected : in_double, c.inputs(), c.is_exact);
}

void expect_gradients(const OpCase& c) {
  const Named inputs = c.inputs();
  const Named outputs = run_in_double(c.run, inputs);
  const Values seed = random_values(static_cast<int64_t>(outputs.at(c.output).size()), 77);
  Named backward_inputs = inputs;
  backward_inputs["d" + c.output] = seed;
  const Named gradients = run_in_double(c.backward, backward_inputs);
  const auto loss = [&](const Named& changed) { return loss_of(c.run, changed, c.output, seed); };

  for (const auto& [name, values] : inputs) {
    const auto found = gradients.find("d" + name);
    if (found == gradients.end()) continue;
    const Values& gradient = found->second;
    ASSERT_EQ(gradient.size(), values.size()) << name;

    Values slopes;
    Values expected;
    const size_t stride = std::max<size_t>(1, values.size() / 24) | 1;  // odd: meets every row and column in turn
    for (size_t i = 0; i < values.size(); i += stride) {
      Values direction(values.size(), 0.0);
      direction[i] = 1.0;
      slopes.push_back(slope_of(loss, inputs, name, direction));
      expected.push_back(gradient[i]);
    }
    EXPECT_LT(relative_error(expected, slopes), kToleranceGradient) << "d" << name;

    const Values direction = random_values(static_cast<int64_t>(values.size()), 78);
    double along = 0.0;
    double norm = 0.0;
    for (size_t i = 0; i < values.size(); ++i) {
      along += gradient[i] * direction[i];
      norm += gradient[i] * gradient[i];
    }
    EXPECT_NEAR(along, slope_of(loss, inputs, name, direction), kToleranceGradient * std::sqrt(norm)) << "d" << name;
  }
}

void expect_refused(const std::function<void()>& body) {
  error_of(ErrorKind::internal, body);
}

TEST(Gpu, IsPresent) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU is here (or this build has no CUDA): every case ran on the CPU alone";
}

}  // namespace megalith::ops::testing
