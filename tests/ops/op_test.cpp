#include "ops/op_test.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/rng.h"

namespace megalith::ops::testing {

namespace {

constexpr double kToleranceF64 = 1e-10;
constexpr double kToleranceF32 = 1e-5;
constexpr double kToleranceBf16 = 2e-2;
constexpr double kToleranceGradient = 1e-6;

double read_element(const void* element, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return *static_cast<const float*>(element);
    case DType::bf16:
      return static_cast<float>(*static_cast<const bfloat16*>(element));
    case DType::f64:
      return *static_cast<const double*>(element);
    case DType::i32:
      return *static_cast<const int32_t*>(element);
    case DType::i64:
      return static_cast<double>(*static_cast<const int64_t*>(element));
  }
  return 0.0;
}

void write_element(void* element, DType dtype, double value) {
  switch (dtype) {
    case DType::f32:
      *static_cast<float*>(element) = static_cast<float>(value);
      break;
    case DType::bf16:
      *static_cast<bfloat16*>(element) = bfloat16(static_cast<float>(value));
      break;
    case DType::f64:
      *static_cast<double*>(element) = value;
      break;
    case DType::i32:
      *static_cast<int32_t*>(element) = static_cast<int32_t>(value);
      break;
    case DType::i64:
      *static_cast<int64_t*>(element) = static_cast<int64_t>(value);
      break;
  }
}

double tolerance_of(DType dtype) {
  return dtype == DType::f64 ? kToleranceF64 : dtype == DType::f32 ? kToleranceF32 : kToleranceBf16;
}

double loss_of(const Runner& forward, const Named& inputs, const std::string& output, const Values& seed) {
  const Named outputs = run_on(1, forward, DType::f64, inputs);
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

Buffer::Buffer(DType dtype, int64_t rows, int64_t cols, int64_t gap)
    : memory_(static_cast<size_t>(rows * (cols + gap) * size_of(dtype)), std::byte{0xff}) {
  tensor_ = Tensor(memory_.data(), dtype, Shape{rows, cols});
  tensor_.row_stride = cols + gap;
}

Buffer::Buffer(DType dtype, int64_t rows, int64_t cols, int64_t gap, const Values& values)
    : Buffer(dtype, rows, cols, gap) {
  MEGALITH_CHECK(static_cast<int64_t>(values.size()) == rows * cols, "{} values for ({}, {})", values.size(), rows,
                 cols);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      write_element(memory_.data() + (r * tensor_.row_stride + c) * size_of(dtype), dtype,
                    values[static_cast<size_t>(r * cols + c)]);
    }
  }
}

Values Buffer::values() const {
  Values values;
  const int64_t size = size_of(tensor_.dtype);
  for (int64_t r = 0; r < tensor_.rows(); ++r) {
    const std::byte* row = memory_.data() + r * tensor_.row_stride * size;
    for (int64_t c = 0; c < tensor_.cols(); ++c) values.push_back(read_element(row + c * size, tensor_.dtype));
    const bool gap_untouched = std::all_of(row + tensor_.cols() * size, row + tensor_.row_stride * size,
                                           [](std::byte byte) { return byte == std::byte{0xff}; });
    EXPECT_TRUE(gap_untouched) << "the gap after row " << r << " was written to";
  }
  return values;
}

Buffer vector_of(DType dtype, const Values& values) {
  return Buffer(dtype, 1, static_cast<int64_t>(values.size()), 0, values);
}

Values random_values(int64_t count, uint64_t key, double scale) {
  Values values;
  for (int64_t i = 0; i < count; ++i) {
    const double value = scale * normal_at(named_key(key, "test"), static_cast<uint64_t>(i));
    values.push_back(static_cast<float>(bfloat16(static_cast<float>(value))));
  }
  return values;
}

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
  return runner(stream, dtype, inputs);
}

void expect_matches(const Runner& runner, const Reference& reference, const Named& inputs) {
  const Named expected = reference(inputs);
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const Named actual = run_on(2, runner, dtype, inputs);
    for (const auto& [name, values] : expected) {
      const double error = relative_error(actual.at(name), values);
      EXPECT_TRUE(error <= tolerance_of(dtype)) << name << " in " << name_of(dtype) << ": relative error " << error;
    }
  }
  expect_same_on_any_threads(runner, inputs);
}

void expect_same_on_any_threads(const Runner& runner, const Named& inputs) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Named one = run_on(1, runner, dtype, inputs);
    for (const int threads : {2, 3}) {
      const Named many = run_on(threads, runner, dtype, inputs);
      for (const auto& [name, values] : one) {
        ASSERT_EQ(many.at(name).size(), values.size());
        EXPECT_EQ(std::memcmp(many.at(name).data(), values.data(), values.size() * sizeof(double)), 0)
            << name << " in " << name_of(dtype) << " differs between 1 and " << threads << " threads";
      }
    }
  }
}

void expect_gradients(const Runner& forward, const Runner& backward, const Named& inputs, const std::string& output) {
  const Named outputs = run_on(1, forward, DType::f64, inputs);
  const Values seed = random_values(static_cast<int64_t>(outputs.at(output).size()), 77);
  Named backward_inputs = inputs;
  backward_inputs["d" + output] = seed;
  const Named gradients = run_on(1, backward, DType::f64, backward_inputs);
  const auto loss = [&](const Named& changed) { return loss_of(forward, changed, output, seed); };

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
  try {
    body();
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal) << error.what();
  }
}

}  // namespace megalith::ops::testing
