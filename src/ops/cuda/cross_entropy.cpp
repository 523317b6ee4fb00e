#include "ops/cross_entropy.h"

#include <limits>

#include "ops/cuda/check.h"
#include "ops/cuda/cross_entropy_launch.h"
#include "ops/cuda/launch.h"

namespace megalith::ops::cuda {

// A target outside of the vocabulary makes its row's loss NaN: only the device knows it.
void cross_entropy(Stream& stream, const CrossEntropy& args) {
  const int64_t rows = args.logits.rows();
  const int64_t cols = args.logits.cols();
  check_matrix(args.logits, "logits", args.logits.dtype, rows, cols);
  const Extent extent = extent_of(args.logits);
  check_vector(args.targets, "targets", DType::i32, rows);
  check_vector(args.weights, "weights", DType::f32, rows);
  check_vector(args.losses, "losses", DType::f32, rows);
  MEGALITH_CHECK(0 < args.vocabulary && args.vocabulary <= cols && cols < std::numeric_limits<int32_t>::max() / 2,
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

}  // namespace megalith::ops::cuda
