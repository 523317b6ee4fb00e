#include "ops/vocabulary/cross_entropy.h"

#include <limits>

#include "ops/cuda/launch.h"
#include "ops/cuda/launch_args.h"
#include "ops/cuda/vocabulary/cross_entropy_launch.h"

namespace megalith::ops::cuda {

namespace {

// Kernels count columns in 32 bits.
constexpr int64_t kMaxColumns = std::numeric_limits<int32_t>::max() / 2;

Extent extent_of_columns(const Tensor& logits, int64_t vocabulary, int64_t first_column) {
  MEGALITH_CHECK(vocabulary < kMaxColumns && first_column + logits.cols() < kMaxColumns,
                 "columns [{}, {} + {}) of a vocabulary of {}", first_column, first_column, logits.cols(), vocabulary);
  return extent_of(logits);
}

}  // namespace

// A target outside of the vocabulary makes its row's loss NaN: only the device knows it.
void cross_entropy(Stream& stream, const CrossEntropy& args) {
  launch_cross_entropy({.extent = extent_of_columns(args.logits, args.vocabulary, 0),
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
  launch_cross_entropy_part({.extent = extent_of_columns(args.logits, args.vocabulary, args.first_column),
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
  launch_cross_entropy_of_parts({.extent = extent_of_columns(args.logits, args.vocabulary, args.first_column),
                                 .logits = matrix_of(args.logits),
                                 .targets = args.targets.as<int32_t>(),
                                 .weights = args.weights.as<float>(),
                                 .losses = args.losses.as<float>(),
                                 .statistics = matrix_of(args.statistics),
                                 .ranks = args.statistics.rows() / 3,
                                 .vocabulary = args.vocabulary,
                                 .first_column = args.first_column,
                                 .with_gradient = args.with_gradient,
                                 .gradient_scale = args.gradient_scale},
                                stream.native());
  check_launch("cross_entropy_of_parts", args.logits);
}

}  // namespace megalith::ops::cuda
