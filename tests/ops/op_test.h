#pragma once

#include <gtest/gtest.h>

#include "ops/cases/op_case.h"

// What tests ask of the cases of operations.

namespace megalith::ops::testing {

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
void expect_matches(const OpCase& c);

// Each gradient that the case's backward pass gives is compared, in double, with central differences: of single
// elements, and along a random direction through all.
void expect_gradients(const OpCase& c);

// `body` throws an internal error.
void expect_refused(const std::function<void()>& body);

}  // namespace megalith::ops::testing
