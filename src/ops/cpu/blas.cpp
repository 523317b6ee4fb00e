#include "ops/cpu/blas.h"

#include <cblas.h>

namespace megalith::ops::cpu {

namespace {

CBLAS_TRANSPOSE operation(bool transpose) {
  return transpose ? CblasTrans : CblasNoTrans;
}

// Parallelism is ours (tiles under the stream's pool): OpenBLAS's own would make results depend on its thread count.
void keep_to_one_thread() {
  static const bool done = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  static_cast<void>(done);
}

template <class M, class Function>
void call(Function gemm, const BlockProduct<M>& p) {
  keep_to_one_thread();
  gemm(CblasRowMajor, operation(p.transpose_a), operation(p.transpose_b), static_cast<blasint>(p.m),
       static_cast<blasint>(p.n), static_cast<blasint>(p.k), p.alpha, p.a.data, static_cast<blasint>(p.a.stride),
       p.b.data, static_cast<blasint>(p.b.stride), p.beta, p.c.data, static_cast<blasint>(p.c.stride));
}

}  // namespace

void multiply(const BlockProduct<float>& product) {
  call(cblas_sgemm, product);
}
void multiply(const BlockProduct<double>& product) {
  call(cblas_dgemm, product);
}

}  // namespace megalith::ops::cpu
