#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/stream.h"
#include "core/tensor.h"

// One list of cases per operation drives all checks, on the CPU and, where there is one, on a GPU. A case names its
// inputs; a Runner makes tensors of one dtype out of them, runs the operation and returns its outputs; a Reference
// computes the same outputs naively in double. What a runner makes (Buffer, Placed) lies in the memory of the device
// that it is being run on; elsewhere, in that of the CPU.

namespace megalith::ops::testing {

using Values = std::vector<double>;
using Named = std::map<std::string, Values>;
using Runner = std::function<Named(Stream& stream, DType dtype, const Named& inputs)>;
using Reference = std::function<Named(const Named& inputs)>;

// Memory that begins as a copy of `from`.
class Memory {
 public:
  Memory(const void* from, int64_t bytes);

  void* data() const { return data_.get(); }
  Device device() const { return device_; }
  void read(void* to) const;

 private:
  Device device_;
  int64_t bytes_;
  std::shared_ptr<void> data_;
};

// A tensor that owns its memory. It begins as NaN throughout, and the gap between its rows must stay so.
class Buffer {
 public:
  Buffer(DType dtype, int64_t rows, int64_t cols, int64_t gap = 0);
  Buffer(DType dtype, int64_t rows, int64_t cols, int64_t gap, const Values& values);

  const Tensor& tensor() const { return tensor_; }
  Tensor vector() const { return Tensor(tensor_.data, tensor_.dtype, Shape{tensor_.elements()}, tensor_.device); }
  Values values() const;

 private:
  Buffer(DType dtype, int64_t rows, int64_t cols, int64_t gap, const Values* values);

  Memory memory_;
  Tensor tensor_;
};

// Values of plain data, such as the scalars of a step.
template <class T>
class Placed {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit Placed(const T& value) : Placed(std::span<const T>(&value, 1)) {}
  explicit Placed(std::span<const T> values)
      : memory_(values.data(), static_cast<int64_t>(values.size_bytes())), count_(values.size()) {}

  T* data() const { return static_cast<T*>(memory_.data()); }
  T value() const {
    std::vector<T> values(count_);
    memory_.read(values.data());
    return values.front();
  }

 private:
  Memory memory_;
  size_t count_;
};

// The elements of any tensor, such as columns of a Buffer.
void write_values(const Tensor& to, const Values& values);
Values read_values(const Tensor& from);

// A vector of `values`, of any dtype.
Buffer vector_of(DType dtype, const Values& values);

// Normal values, exact in bf16 so that every dtype starts from the same inputs.
Values random_values(int64_t count, uint64_t key, double scale = 1.0);

double relative_error(const Values& actual, const Values& expected);

// Runs on a pool of `threads`.
Named run_on(int threads, const Runner& runner, DType dtype, const Named& inputs);
// Runs on the first GPU.
Named run_on_gpu(const Runner& runner, DType dtype, const Named& inputs);
// The results on one thread of the CPU and, where there is one, on the GPU.
std::vector<Named> run_everywhere(const Runner& runner, DType dtype, const Named& inputs);
bool has_gpu();

// f64, f32 and bf16 against the reference, relative L2 of each output; then 1, 2 and 3 threads against each other, bit
// for bit. On a GPU: f32 and bf16 against the reference, and a second run against the first, bit for bit.
void expect_matches(const Runner& runner, const Reference& reference, const Named& inputs);
void expect_same_on_any_threads(const Runner& runner, const Named& inputs);

// The loss is sum(forward's `output` * seed). `backward` takes the inputs and the seed as "d" + output, and returns the
// gradient of an input X as "dX". Each is compared, in double, with central differences: of single elements, and along
// a random direction through all.
void expect_gradients(const Runner& forward, const Runner& backward, const Named& inputs, const std::string& output);

// `body` throws an internal error.
void expect_refused(const std::function<void()>& body);

}  // namespace megalith::ops::testing
