#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/cases/buffers.h"

// The cases of every operation: tests check the small ones, on the CPU and, where there is one, on a GPU; benches time
// the large ones. <stem>.cpp lists those of the operations of src/ops/<stem>.h, and all_cases() all.

namespace megalith::ops::testing {

// Makes tensors of one dtype out of the inputs, runs the operation and returns its outputs.
using Runner = std::function<Named(Stream& stream, DType dtype, const Named& inputs)>;
// Computes the same outputs naively in double.
using Reference = std::function<Named(const Named& inputs)>;

struct OpCase {
  std::string operation;  // as MEGALITH_OP calls it: what a bench times, whatever else `run` needs
  std::string shape;
  Runner run;
  std::function<Named()> inputs;
  Reference expected = {};  // absent: what the CPU computes in double
  bool is_exact = false;    // outputs are the expected ones to the bit, in every dtype
  // Gives the gradient of an input X as "dX", for a loss of sum(`run`'s `output` * "d" + output); absent: not checked.
  Runner backward = {};
  std::string output = {};
};
using OpCases = std::vector<OpCase>;

enum class Size { small, large };

OpCases all_cases(Size size);

// Runs on one thread of the CPU in double.
Named run_in_double(const Runner& runner, const Named& inputs);

OpCases activation_cases(Size size);
OpCases attention_cases(Size size);
OpCases cross_entropy_cases(Size size);
OpCases dropout_cases(Size size);
OpCases elementwise_cases(Size size);
OpCases embedding_cases(Size size);
OpCases gemm_cases(Size size);
OpCases norm_cases(Size size);
OpCases optimizer_cases(Size size);
OpCases quantize_cases(Size size);
OpCases rope_cases(Size size);
OpCases row_order_cases(Size size);
OpCases scales_cases(Size size);
OpCases step_scalars_cases(Size size);

}  // namespace megalith::ops::testing
