#include "ops/cases/op_case.h"

#include <iterator>

namespace megalith::ops::testing {

OpCases all_cases(Size size) {
  OpCases all;
  for (const auto& cases_of : {activation_cases, attention_cases, cross_entropy_cases, dropout_cases, elementwise_cases,
                               embedding_cases, gemm_cases, norm_cases, optimizer_cases, quantize_cases, rope_cases,
                               row_order_cases, scales_cases, step_scalars_cases}) {
    OpCases some = cases_of(size);
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  }
  return all;
}

Named run_in_double(const Runner& runner, const Named& inputs) {
  ThreadPool pool(1);
  Stream stream(pool);
  const MadeOn made_on(stream);
  return runner(stream, DType::f64, inputs);
}

}  // namespace megalith::ops::testing
