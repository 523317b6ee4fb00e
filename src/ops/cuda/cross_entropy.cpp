#include "ops/cross_entropy.h"

#include <limits>

#include "ops/cuda/check.h"
#include "ops/cuda/cross_entropy_launch.h"
#include "ops/cuda/launch.h"

namespace megalith::ops::cuda {

namespace {

// Kernels count columns in 32 bits.
constexpr int64_t kMaxColumns = std::numeric_limits<int32_t>::max() / 2;

void check_part(const Tensor& logits, int64_t vocabulary, int64_t first_column) {
  MEGALITH_CHECK(
      0 < vocabulary && vocabulary < kMaxColumns && 0 <= first_column && first_column + logits.cols() < kMaxColumns,
      "columns [{}, {} + {}) of a vocabulary of {}", first_column, first_column, logits.cols(), vocabulary);
}

}  // namespace

// A target outside of the vocabulary makes its row's loss NaN: only the device knows it.
void cross_entropy(Stream& stream, const CrossEntropy& args) {
  const int64_t rows = args.logits.rows();
  const int64_t cols = args.logits.cols();
  check_matrix(args.logits, "logits", args.logits.dtype, rows, cols);
  const Extent extent = extent_of(args.logits);
  check_vector(args.targets, "targets", DType::i32, rows);
  check_vector(args.weights, "weights", DType::f32, rows);
  check_vector(args.losses, "losses", DType::f32, rows);
  MEGALITH_CHECK(0 < args.vocabulary && args.vocabulary <= cols && cols < kMaxColumns,
                 "a vocabulary of {} in {} columns", args.vocabulary, cols);
  launch_cross_entropy({.extent = extent,
                        .logits = matrix_of(args.logits),
                        .targets = args.targets.as<int32_t>(),
                        .weights = args.weights.as<float>(),
                        .losses = args.losses.as<float>(),
                        .vocabulary = args.vocabulary,
                        .with_gradient = args.with_gradient,
                        .gradient_scale = args.gradient_scale},
                       stream.native());
  check_launch("cross_entropy", args.logits);
}

void cross_entropy_part(Stream& stream, const CrossEntropyPart& args) {
  const int64_t rows = args.logits.rows();
  check_matrix(args.logits, "logits", args.logits.dtype, rows, args.logits.cols());
  const Extent extent = extent_of(args.logits);
  check_vector(args.targets, "targets", DType::i32, rows);
  check_matrix(args.statistics, "statistics", DType::f32, 3, rows);
  check_part(args.logits, args.vocabulary, args.first_column);
  launch_cross_entropy_part({.extent = extent,
                             .logits = matrix_of(args.logits),
                             .targets = args.targets.as<int32_t>(),
                             .statistics = matrix_of(args.statistics),
                             .vocabulary = args.vocabulary,
                             .first_column = args.first_column},
                            stream.native());
  check_launch("cross_entropy_part", args.logits);
}

// As in cross_entropy, a target outside of the vocabulary makes its row's loss NaN.
void cross_entropy_of_parts(Stream& stream, const CrossEntropyOfParts& args) {
  const int64_t rows = args.logits.rows();
  const int64_t ranks = div_exact(args.statistics.rows(), 3);
  check_matrix(args.logits, "logits", args.logits.dtype, rows, args.logits.cols());
  const Extent extent = extent_of(args.logits);
  check_vector(args.targets, "targets", DType::i32, rows);
  check_vector(args.weights, "weights", DType::f32, rows);
  check_vector(args.losses, "losses", DType::f32, rows);
  check_matrix(args.statistics, "statistics", DType::f32, 3 * ranks, rows);
  check_part(args.logits, args.vocabulary, args.first_column);
  launch_cross_entropy_of_parts({.extent = extent,
                                 .logits = matrix_of(args.logits),
                                 .targets = args.targets.as<int32_t>(),
                                 .weights = args.weights.as<float>(),
                                 .losses = args.losses.as<float>(),
                                 .statistics = matrix_of(args.statistics),
                                 .ranks = ranks,
                                 .vocabulary = args.vocabulary,
                                 .first_column = args.first_column,
                                 .with_gradient = args.with_gradient,
                                 .gradient_scale = args.gradient_scale},
                                stream.native());
  check_launch("cross_entropy_of_parts", args.logits);
}

}  // namespace megalith::ops::cuda
