#pragma once

#include <cstdint>
#include <type_traits>

namespace megalith::ops::cpu {

// A row-major block of a matrix; rows are `stride` elements apart.
template <class M>
struct Block {
  M* data;
  int64_t stride;

  Block from_row(int64_t row) const { return {data + row * stride, stride}; }
  operator Block<const M>() const requires(!std::is_const_v<M>) { return {data, stride}; }
};

// c (m,n) = alpha op(a) op(b) + beta c, op(x) = x or its transpose, in the calling thread. With beta = 0 what c held
// before does not matter.
template <class M>
struct BlockProduct {
  int64_t m, n, k;
  M alpha = 1;
  Block<const M> a;
  bool transpose_a = false;
  Block<const M> b;
  bool transpose_b = false;
  M beta = 0;
  Block<M> c;
};

void multiply(const BlockProduct<float>& product);
void multiply(const BlockProduct<double>& product);

}  // namespace megalith::ops::cpu
