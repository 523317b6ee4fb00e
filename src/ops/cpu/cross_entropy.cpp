#include "ops/cross_entropy.h"

#include "ops/cpu/check.h"
#include "ops/cpu/math.h"
#include "ops/cpu/tiles.h"

namespace megalith::ops::cpu {

namespace {

// Columns summed in the main dtype before the sum moves into a double: a vocabulary is long.
constexpr int64_t kBlock = 2048;

template <class T>
Main<T> row_maximum(const T* logits, int64_t count) {
  auto maximum = -std::numeric_limits<Main<T>>::infinity();
#pragma omp simd reduction(max : maximum)
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<Main<T>>(logits[i]);
    maximum = maximum < value ? value : maximum;
  }
  return maximum;
}

// A NaN passes through exp, whatever the maximum made of it.
template <class T>
Main<T> log_sum_exp(const T* logits, int64_t count) {
  using M = Main<T>;
  const M maximum = row_maximum(logits, count);
  double total = 0.0;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(count, begin + kBlock);
    M sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) sum += fast_exp(static_cast<M>(logits[i]) - maximum);
    total += static_cast<double>(sum);
  }
  return maximum + static_cast<M>(std::log(total));
}

template <class T>
void logits_to_gradient(T* logits, int64_t count, int64_t padded, int64_t target, Main<T> log_sum, Main<T> factor) {
  using M = Main<T>;
  const M at_target = factor * (fast_exp(static_cast<M>(logits[target]) - log_sum) - M(1));
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    logits[i] = round_to<T>(factor * fast_exp(static_cast<M>(logits[i]) - log_sum));
  }
  logits[target] = round_to<T>(at_target);
  std::fill(logits + count, logits + padded, T(M(0)));
}

template <class T>
void cross_entropy_row(const CrossEntropy& args, int64_t row) {
  using M = Main<T>;
  T* logits = args.logits.row<T>(row);
  const int64_t padded = args.logits.cols();
  const M weight = args.weights.as<M>()[row];
  M& loss = args.losses.as<M>()[row];
  if (weight == M(0)) {
    loss = M(0);
    if (args.with_gradient) std::fill(logits, logits + padded, T(M(0)));
    return;
  }
  const int64_t target = args.targets.as<int32_t>()[row];
  MEGALITH_CHECK(0 <= target && target < args.vocabulary, "target {} in row {} of a vocabulary of {}", target, row,
                 args.vocabulary);
  const M log_sum = log_sum_exp(logits, args.vocabulary);
  loss = weight * (log_sum - static_cast<M>(logits[target]));
  if (args.with_gradient) {
    logits_to_gradient(logits, args.vocabulary, padded, target, log_sum,
                       weight * static_cast<M>(args.gradient_scale == nullptr ? 1.0 : *args.gradient_scale));
  }
}

}  // namespace

void cross_entropy(Stream& stream, const CrossEntropy& args) {
  const int64_t rows = args.logits.rows();
  check_vector(args.targets, "targets", DType::i32, rows);
  check_vector(args.weights, "weights", main_dtype(args.logits.dtype), rows);
  check_vector(args.losses, "losses", main_dtype(args.logits.dtype), rows);
  MEGALITH_CHECK(0 < args.vocabulary && args.vocabulary <= args.logits.cols(), "a vocabulary of {} in {} columns",
                 args.vocabulary, args.logits.cols());
  dispatch_float(args.logits.dtype, [&]<class T>(std::type_identity<T>) {
    run_pieces(stream, rows, tile_rows(args.logits.cols()), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) cross_entropy_row<T>(args, row);
    });
  });
}

}  // namespace megalith::ops::cpu
