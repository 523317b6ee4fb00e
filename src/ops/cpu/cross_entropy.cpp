#include "ops/vocabulary/cross_entropy.h"

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

// sum = the sum of exp(logit - maximum).
template <class M>
struct SoftmaxSum {
  M maximum;
  double sum;

  M log_sum_exp() const { return maximum + static_cast<M>(std::log(sum)); }
};

// Where there is nothing to be relative to, a sum is relative to 0, so that -infinity counts as nothing.
template <class M>
M finite_base(M maximum) {
  return maximum == -std::numeric_limits<M>::infinity() ? M(0) : maximum;
}

// A NaN passes through exp, whatever the maximum made of it.
template <class T>
SoftmaxSum<Main<T>> softmax_sum(const T* logits, int64_t count) {
  using M = Main<T>;
  const M maximum = row_maximum(logits, count);
  const M base = finite_base(maximum);
  double total = 0.0;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(count, begin + kBlock);
    M sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) sum += fast_exp(static_cast<M>(logits[i]) - base);
    total += static_cast<double>(sum);
  }
  return {maximum, total};
}

// Columns [0, count) of the vocabulary, which the target need not be one of, and padding after them.
template <class T>
void logits_to_gradient(T* logits, int64_t count, int64_t padded, int64_t target, Main<T> log_sum, Main<T> factor) {
  using M = Main<T>;
  const bool has_target = 0 <= target && target < count;
  const M at_target = has_target ? factor * (fast_exp(static_cast<M>(logits[target]) - log_sum) - M(1)) : M(0);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    logits[i] = round_to<T>(factor * fast_exp(static_cast<M>(logits[i]) - log_sum));
  }
  if (has_target) logits[target] = round_to<T>(at_target);
  std::fill(logits + count, logits + padded, T(M(0)));
}

int64_t checked_target(const Tensor& targets, int64_t row, int64_t vocabulary) {
  const int64_t target = targets.as<int32_t>()[row];
  MEGALITH_CHECK(0 <= target && target < vocabulary, "target {} in row {} of a vocabulary of {}", target, row,
                 vocabulary);
  return target;
}

double scale_of(const double* gradient_scale) {
  return gradient_scale == nullptr ? 1.0 : *gradient_scale;
}

// How many columns, from the one that is the vocabulary's `first_column` on, are in the vocabulary.
template <class Args>
int64_t vocabulary_columns(const Args& args, int64_t first_column) {
  return std::clamp<int64_t>(args.vocabulary - first_column, 0, args.logits.cols());
}

// What the whole vocabulary says of a row.
template <class M>
struct WholeRow {
  SoftmaxSum<M> softmax{-std::numeric_limits<M>::infinity(), 0.0};
  M at_target = 0;
};

// The loss of a row and, in place of the logits, its gradient. A row that counts nothing does not look at
// `whole_row(target)`, nor at its target.
template <class T, class Args, class MakeWholeRow>
void finish_row(const Args& args, int64_t row, int64_t first_column, const MakeWholeRow& whole_row) {
  using M = Main<T>;
  T* logits = args.logits.template row<T>(row);
  const int64_t padded = args.logits.cols();
  const M weight = args.weights.template as<M>()[row];
  M& loss = args.losses.template as<M>()[row];
  if (weight == M(0)) {
    loss = M(0);
    if (args.with_gradient) std::fill(logits, logits + padded, T(M(0)));
    return;
  }
  const int64_t target = checked_target(args.targets, row, args.vocabulary);
  const WholeRow<M> whole = whole_row(target);
  const M log_sum = whole.softmax.log_sum_exp();
  loss = weight * (log_sum - whole.at_target);
  if (args.with_gradient) {
    logits_to_gradient(logits, vocabulary_columns(args, first_column), padded, target - first_column, log_sum,
                       weight * static_cast<M>(scale_of(args.gradient_scale)));
  }
}

template <class T>
void cross_entropy_row(const CrossEntropy& args, int64_t row) {
  const T* logits = args.logits.row<T>(row);
  finish_row<T>(args, row, 0, [&](int64_t target) {
    return WholeRow<Main<T>>{softmax_sum(logits, args.vocabulary), static_cast<Main<T>>(logits[target])};
  });
}

template <class T>
void part_row(const CrossEntropyPart& args, int64_t row) {
  using M = Main<T>;
  const T* logits = args.logits.row<T>(row);
  const int64_t count = vocabulary_columns(args, args.first_column);
  const int64_t target = args.targets.as<int32_t>()[row] - args.first_column;
  const SoftmaxSum<M> softmax = softmax_sum(logits, count);
  args.statistics.row<M>(0)[row] = softmax.maximum;
  args.statistics.row<M>(1)[row] = static_cast<M>(softmax.sum);
  args.statistics.row<M>(2)[row] = 0 <= target && target < count ? static_cast<M>(logits[target]) : M(0);
}

// What all ranks together know of a row.
template <class M>
WholeRow<M> merge_statistics(const Tensor& statistics, int64_t row) {
  WholeRow<M> whole;
  for (int64_t i = 0; i < statistics.rows(); i += 3) {
    whole.softmax.maximum = std::max(whole.softmax.maximum, statistics.row<M>(i)[row]);
  }
  const M base = finite_base(whole.softmax.maximum);
  for (int64_t i = 0; i < statistics.rows(); i += 3) {
    const M correction = fast_exp(statistics.row<M>(i)[row] - base);
    whole.softmax.sum += static_cast<double>(statistics.row<M>(i + 1)[row]) * static_cast<double>(correction);
    whole.at_target += statistics.row<M>(i + 2)[row];
  }
  return whole;
}

template <class T>
void row_of_parts(const CrossEntropyOfParts& args, int64_t row) {
  finish_row<T>(args, row, args.first_column, [&](int64_t) { return merge_statistics<Main<T>>(args.statistics, row); });
}

}  // namespace

void cross_entropy(Stream& stream, const CrossEntropy& args) {
  const int64_t rows = args.logits.rows();
  dispatch_float(args.logits.dtype, [&]<class T>(std::type_identity<T>) {
    run_pieces(stream, rows, tile_rows(args.logits.cols()), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) cross_entropy_row<T>(args, row);
    });
  });
}

void cross_entropy_part(Stream& stream, const CrossEntropyPart& args) {
  const int64_t rows = args.logits.rows();
  dispatch_float(args.logits.dtype, [&]<class T>(std::type_identity<T>) {
    run_pieces(stream, rows, tile_rows(args.logits.cols()), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) part_row<T>(args, row);
    });
  });
}

void cross_entropy_of_parts(Stream& stream, const CrossEntropyOfParts& args) {
  const int64_t rows = args.logits.rows();
  dispatch_float(args.logits.dtype, [&]<class T>(std::type_identity<T>) {
    run_pieces(stream, rows, tile_rows(args.logits.cols()), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) row_of_parts<T>(args, row);
    });
  });
}

}  // namespace megalith::ops::cpu
