#include "comm/host/reduce.h"

#include <algorithm>
#include <array>

namespace megalith::comm {

namespace {
// Small enough for the innermost cache, whatever the number of pieces.
constexpr int64_t kBlock = 1024;

template <class T>
struct Accumulator {
  using Type = T;
};
template <>
struct Accumulator<bfloat16> {
  using Type = float;
};

template <class A>
A largest(A a, A b) {
  return b > a || b != b ? b : a;
}

template <class T>
void reduce_block(Reduction reduction, std::span<const void* const> pieces, T* output, int64_t begin, int64_t count) {
  using A = typename Accumulator<T>::Type;
  std::array<A, kBlock> total;
  const T* first = static_cast<const T*>(pieces[0]) + begin;
  for (int64_t i = 0; i < count; ++i) total[static_cast<size_t>(i)] = static_cast<A>(first[i]);
  for (const void* const piece : pieces.subspan(1)) {
    const T* values = static_cast<const T*>(piece) + begin;
    if (reduction == Reduction::sum) {
      for (int64_t i = 0; i < count; ++i) total[static_cast<size_t>(i)] += static_cast<A>(values[i]);
    } else {
      for (int64_t i = 0; i < count; ++i) {
        A& best = total[static_cast<size_t>(i)];
        best = largest(best, static_cast<A>(values[i]));
      }
    }
  }
  for (int64_t i = 0; i < count; ++i) output[begin + i] = static_cast<T>(total[static_cast<size_t>(i)]);
}

template <class T>
void reduce_typed(Reduction reduction, std::span<const void* const> pieces, void* output, int64_t elements) {
  for (int64_t begin = 0; begin < elements; begin += kBlock) {
    reduce_block(reduction, pieces, static_cast<T*>(output), begin, std::min(kBlock, elements - begin));
  }
}
}  // namespace

void reduce(Reduction reduction, DType dtype, std::span<const void* const> pieces, void* output, int64_t elements) {
  switch (dtype) {
    case DType::f32:
      return reduce_typed<float>(reduction, pieces, output, elements);
    case DType::bf16:
      return reduce_typed<bfloat16>(reduction, pieces, output, elements);
    case DType::f64:
      return reduce_typed<double>(reduction, pieces, output, elements);
    case DType::i32:
      return reduce_typed<int32_t>(reduction, pieces, output, elements);
    case DType::i64:
      return reduce_typed<int64_t>(reduction, pieces, output, elements);
    default:
      fail(ErrorKind::internal, "internal error: no reduction of {}", megalith::name_of(dtype));
  }
}

}  // namespace megalith::comm
