#include "ops/op_test.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/device.h"
#include "core/rng.h"
#include "expect_error.h"

namespace megalith::ops::testing {

namespace {

constexpr double kToleranceF64 = 1e-10;
constexpr double kToleranceF32 = 1e-5;
constexpr double kToleranceBf16 = 2e-2;
constexpr double kToleranceGradient = 1e-6;

// The stream of the runner that is being run on a GPU.
thread_local Stream* gpu_stream = nullptr;

Device current_device() {
  return gpu_stream == nullptr ? Device::cpu : Device::cuda;
}

// Every element size is even, so that any memory is so many bf16.
Tensor bytes_at(const void* memory, int64_t bytes, Device device) {
  return Tensor(const_cast<void*>(memory), DType::bf16, Shape{div_exact(bytes, 2)}, device);
}

void copy_bytes(const void* from, Device from_device, void* to, Device to_device, int64_t bytes) {
  if (bytes == 0) return;
  if (gpu_stream == nullptr) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  copy(*gpu_stream, bytes_at(from, bytes, from_device), bytes_at(to, bytes, to_device));
  gpu_stream->wait();
}

double read_element(const void* element, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return *static_cast<const float*>(element);
    case DType::bf16:
      return static_cast<float>(*static_cast<const bfloat16*>(element));
    case DType::f64:
      return *static_cast<const double*>(element);
    case DType::i16:
      return *static_cast<const int16_t*>(element);
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
    case DType::i16:
      *static_cast<int16_t*>(element) = static_cast<int16_t>(value);
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

Memory::Memory(const void* from, int64_t bytes) : device_(current_device()), bytes_(bytes) {
  if (device_ == Device::cpu) {  // of the heap, so that a sanitizer sees its ends
    data_ = std::shared_ptr<void>(new std::byte[static_cast<size_t>(bytes)],
                                  [](void* memory) { delete[] static_cast<std::byte*>(memory); });
  } else {
    const int64_t size = std::max<int64_t>(bytes, 16);
    data_ = std::shared_ptr<void>(acquire_device_memory(device_, size, "test"),
                                  [size](void* memory) { release_device_memory(Device::cuda, memory, size); });
  }
  copy_bytes(from, Device::cpu, data_.get(), device_, bytes);
}

void Memory::read(void* to) const {
  copy_bytes(data_.get(), device_, to, Device::cpu, bytes_);
}

namespace {

// NaN (-1 as an integer) where there is no value.
std::vector<std::byte> image_of(DType dtype, int64_t rows, int64_t cols, int64_t gap, const Values* values) {
  const int64_t size = size_of(dtype);
  std::vector<std::byte> image(static_cast<size_t>(rows * (cols + gap) * size), std::byte{0xff});
  if (values == nullptr) return image;
  MEGALITH_CHECK(static_cast<int64_t>(values->size()) == rows * cols, "{} values for ({}, {})", values->size(), rows,
                 cols);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      write_element(image.data() + (r * (cols + gap) + c) * size, dtype, (*values)[static_cast<size_t>(r * cols + c)]);
    }
  }
  return image;
}

}  // namespace

Buffer::Buffer(DType dtype, int64_t rows, int64_t cols, int64_t gap, const Values* values)
    : memory_(image_of(dtype, rows, cols, gap, values).data(), rows * (cols + gap) * size_of(dtype)),
      tensor_(memory_.data(), dtype, Shape{rows, cols}, memory_.device()) {
  tensor_.row_stride = cols + gap;
}

Buffer::Buffer(DType dtype, int64_t rows, int64_t cols, int64_t gap) : Buffer(dtype, rows, cols, gap, nullptr) {}

Buffer::Buffer(DType dtype, int64_t rows, int64_t cols, int64_t gap, const Values& values)
    : Buffer(dtype, rows, cols, gap, &values) {}

Values Buffer::values() const {
  const int64_t size = size_of(tensor_.dtype);
  std::vector<std::byte> image(static_cast<size_t>(tensor_.rows() * tensor_.row_stride * size));
  memory_.read(image.data());
  Values values;
  for (int64_t r = 0; r < tensor_.rows(); ++r) {
    const std::byte* row = image.data() + r * tensor_.row_stride * size;
    for (int64_t c = 0; c < tensor_.cols(); ++c) values.push_back(read_element(row + c * size, tensor_.dtype));
    const bool gap_untouched = std::all_of(row + tensor_.cols() * size, row + tensor_.row_stride * size,
                                           [](std::byte byte) { return byte == std::byte{0xff}; });
    EXPECT_TRUE(gap_untouched) << "the gap after row " << r << " was written to";
  }
  return values;
}

void write_values(const Tensor& to, const Values& values) {
  const std::vector<std::byte> image = image_of(to.dtype, to.rows(), to.cols(), 0, &values);
  const int64_t bytes = to.cols() * size_of(to.dtype);
  for (int64_t r = 0; r < to.rows(); ++r) {
    auto* row = static_cast<std::byte*>(to.data) + r * to.row_stride * size_of(to.dtype);
    copy_bytes(image.data() + r * bytes, Device::cpu, row, to.device, bytes);
  }
}

Values read_values(const Tensor& from) {
  const int64_t size = size_of(from.dtype);
  std::vector<std::byte> row(static_cast<size_t>(from.cols() * size));
  Values values;
  for (int64_t r = 0; r < from.rows(); ++r) {
    const auto* source = static_cast<const std::byte*>(from.data) + r * from.row_stride * size;
    copy_bytes(source, from.device, row.data(), Device::cpu, from.cols() * size);
    for (int64_t c = 0; c < from.cols(); ++c) values.push_back(read_element(row.data() + c * size, from.dtype));
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

bool has_gpu() {
  static const bool found = !find_accelerators().empty();
  return found;
}

Named run_on_gpu(const Runner& runner, DType dtype, const Named& inputs) {
  ThreadPool pool(1);
  Stream stream(pool, Device::cuda);
  struct Current {
    explicit Current(Stream& stream) { gpu_stream = &stream; }
    ~Current() { gpu_stream = nullptr; }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
  } const current(stream);
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

void expect_close(const Named& actual, const Named& expected, DType dtype, const char* where) {
  for (const auto& [name, values] : expected) {
    const double error = relative_error(actual.at(name), values);
    EXPECT_TRUE(error <= tolerance_of(dtype))
        << name << " in " << name_of(dtype) << " on the " << where << ": relative error " << error;
  }
}

void expect_identical(const Named& actual, const Named& expected, DType dtype, const std::string& between) {
  for (const auto& [name, values] : expected) {
    ASSERT_EQ(actual.at(name).size(), values.size());
    EXPECT_EQ(std::memcmp(actual.at(name).data(), values.data(), values.size() * sizeof(double)), 0)
        << name << " in " << name_of(dtype) << " differs between " << between;
  }
}

}  // namespace

void expect_matches(const Runner& runner, const Reference& reference, const Named& inputs) {
  const Named expected = reference(inputs);
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    expect_close(run_on(2, runner, dtype, inputs), expected, dtype, "CPU");
  }
  expect_same_on_any_threads(runner, inputs);
  if (!has_gpu()) return;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Named first = run_on_gpu(runner, dtype, inputs);
    expect_close(first, expected, dtype, "GPU");
    expect_identical(run_on_gpu(runner, dtype, inputs), first, dtype, "two runs on the GPU");
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
  error_of(ErrorKind::internal, body);
}

TEST(Gpu, IsPresent) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU is here (or this build has no CUDA): every case ran on the CPU alone";
}

}  // namespace megalith::ops::testing
