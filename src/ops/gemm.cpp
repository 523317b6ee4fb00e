#include "ops/gemm.h"

namespace megalith::ops {

void check(const Contract& contract, const Gemm& args) {
  const int64_t m = args.c.rows();
  const int64_t n = args.c.cols();
  const int64_t k = args.transpose_a ? args.a.rows() : args.a.cols();
  const DType dtype = args.a.dtype;
  const bool scaled = is_fp8(dtype);
  if (!scaled) contract.floats(args.a, "a");
  contract.matrix(args.a, "a", dtype, args.transpose_a ? k : m, args.transpose_a ? m : k);
  contract.matrix(args.b, "b", scaled && is_fp8(args.b.dtype) ? args.b.dtype : dtype, args.transpose_b ? n : k,
                  args.transpose_b ? k : n);
  contract.floats(args.c, "c");
  contract.require(scaled ? args.c.dtype != DType::f64 : args.c.dtype == dtype || args.c.dtype == main_dtype(dtype),
                   "'c' holds {}, 'a' and 'b' {}", name_of(args.c.dtype), name_of(dtype));
  contract.require(scaled == (args.a_inverse != nullptr) && scaled == (args.b_inverse != nullptr),
                   "'a' holds {} and has {}", name_of(dtype), args.a_inverse != nullptr ? "an inverse" : "no inverse");
  contract.require(!scaled || (!args.transpose_a && args.transpose_b), "fp8 is multiplied as rows by rows alone");
  contract.require(args.beta == 0.0F || args.beta == 1.0F, "beta is {}", args.beta);
  contract.require((args.beta != 0.0F) + static_cast<bool>(args.addend) + static_cast<bool>(args.gelu_input) <= 1,
                   "at most one of beta, addend and gelu_input");
  if (args.bias) contract.vector(args.bias, "bias", args.c.dtype, n);
  if (args.addend) {
    contract.like(args.addend, "addend", args.c);
    contract.require(args.addend.data != args.c.data, "the addend is c itself: use beta = 1");
  }
  if (args.gelu_input) contract.like(args.gelu_input, "gelu_input", args.c);
}

namespace {

std::string types_in_words(const Gemm& args) {
  if (args.a.dtype == args.b.dtype) return std::string(name_of(args.a.dtype));
  return fmt::format("{}*{}", name_of(args.a.dtype), name_of(args.b.dtype));
}

}  // namespace

OpCost cost_of(const Gemm& args) {
  const auto m = static_cast<double>(args.c.rows());
  const auto n = static_cast<double>(args.c.cols());
  const int64_t k = args.transpose_a ? args.a.rows() : args.a.cols();
  const double reads_c = args.beta != 0.0F ? 1.0 : 0.0;
  return {
      .kind = OpKind::product,
      .flops = 2.0 * m * n * static_cast<double>(k),
      .bytes = bytes_of(args.a, args.b, args.bias, args.addend, args.gelu_input) + (1.0 + reads_c) * bytes_of(args.c),
      .shape = fmt::format("{} {}x{}x{} {}{}{}{}{}{}{}", types_in_words(args), args.c.rows(), args.c.cols(), k,
                           args.transpose_a ? 't' : 'n', args.transpose_b ? 't' : 'n',
                           args.c.dtype == args.a.dtype || args.c.dtype == DType::bf16 ? "" : " to fp32",
                           reads_c > 0.0 ? " accumulate" : "", args.addend ? " addend" : "",
                           args.gelu_input ? " gelu" : "", args.fast_accumulation ? " fast" : "")};
}

}  // namespace megalith::ops
