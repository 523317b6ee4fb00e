#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/stream.h"
#include "core/tensor.h"

// One list of cases per operation drives all checks. A case names its inputs; a Runner makes tensors of one dtype out
// of them, runs the operation and returns its outputs; a Reference computes the same outputs naively in double.

namespace megalith::ops::testing {

using Values = std::vector<double>;
using Named = std::map<std::string, Values>;
using Runner = std::function<Named(Stream& stream, DType dtype, const Named& inputs)>;
using Reference = std::function<Named(const Named& inputs)>;

// A tensor that owns its memory. It begins as NaN throughout, and the gap between its rows must stay so.
class Buffer {
 public:
  Buffer(DType dtype, int64_t rows, int64_t cols, int64_t gap = 0);
  Buffer(DType dtype, int64_t rows, int64_t cols, int64_t gap, const Values& values);

  const Tensor& tensor() const { return tensor_; }
  Tensor vector() const { return Tensor(tensor_.data, tensor_.dtype, Shape{tensor_.elements()}); }
  Values values() const;

 private:
  std::vector<std::byte> memory_;
  Tensor tensor_;
};

// A vector of `values`, of any dtype.
Buffer vector_of(DType dtype, const Values& values);

// Normal values, exact in bf16 so that every dtype starts from the same inputs.
Values random_values(int64_t count, uint64_t key, double scale = 1.0);

double relative_error(const Values& actual, const Values& expected);

// Runs on a pool of `threads`.
Named run_on(int threads, const Runner& runner, DType dtype, const Named& inputs);

// f64, f32 and bf16 against the reference, relative L2 of each output; then 1, 2 and 3 threads against each other, bit
// for bit.
void expect_matches(const Runner& runner, const Reference& reference, const Named& inputs);
void expect_same_on_any_threads(const Runner& runner, const Named& inputs);

// The loss is sum(forward's `output` * seed). `backward` takes the inputs and the seed as "d" + output, and returns the
// gradient of an input X as "dX". Each is compared, in double, with central differences: of single elements, and along
// a random direction through all.
void expect_gradients(const Runner& forward, const Runner& backward, const Named& inputs, const std::string& output);

// `body` throws an internal error.
void expect_refused(const std::function<void()>& body);

}  // namespace megalith::ops::testing
