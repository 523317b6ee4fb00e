#include "ops/norm.h"

#include "ops/cuda/check.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/norm_launch.h"

namespace megalith::ops::cuda {

namespace {

void check_statistics(NormKind kind, const Tensor& mean, const Tensor& rstd, const Tensor& x) {
  check_vector(rstd, "rstd", DType::f32, x.rows());
  if (kind == NormKind::layer_norm) check_vector(mean, "mean", DType::f32, x.rows());
}

// LayerNorm's; RMSNorm has none, which is how the kernels tell the two apart.
float* mean_of(NormKind kind, const Tensor& mean) {
  return kind == NormKind::layer_norm ? mean.as<float>() : nullptr;
}

}  // namespace

void norm_forward(Stream& stream, const NormForward& args) {
  const int64_t rows = args.x.rows();
  const int64_t cols = args.x.cols();
  const DType dtype = args.x.dtype;
  check_matrix(args.x, "x", dtype, rows, cols);
  const Extent extent = extent_of(args.x);
  check_matrix(args.y, "y", dtype, rows, cols);
  check_vector(args.weight, "weight", dtype, cols);
  if (args.bias) check_vector(args.bias, "bias", dtype, cols);
  check_statistics(args.kind, args.mean, args.rstd, args.x);
  launch_norm_forward({.extent = extent,
                       .x = matrix_of(args.x),
                       .weight = args.weight.data,
                       .bias = args.bias.data,
                       .y = matrix_of(args.y),
                       .mean = mean_of(args.kind, args.mean),
                       .rstd = args.rstd.as<float>(),
                       .epsilon = static_cast<float>(args.epsilon)},
                      stream.native());
  check_launch("norm_forward", args.x);
}

void norm_backward(Stream& stream, const NormBackward& args) {
  const int64_t rows = args.x.rows();
  const int64_t cols = args.x.cols();
  const DType dtype = args.x.dtype;
  check_matrix(args.x, "x", dtype, rows, cols);
  const Extent extent = extent_of(args.x);
  check_matrix(args.dy, "dy", dtype, rows, cols);
  check_matrix(args.dx, "dx", dtype, rows, cols);
  if (args.residual_gradient) check_matrix(args.residual_gradient, "residual_gradient", dtype, rows, cols);
  check_vector(args.weight, "weight", dtype, cols);
  check_vector(args.dweight, "dweight", DType::f32, cols);
  if (args.dbias) check_vector(args.dbias, "dbias", DType::f32, cols);
  if (args.dx_sums) check_vector(args.dx_sums, "dx_sums", DType::f32, cols);
  check_statistics(args.kind, args.mean, args.rstd, args.x);
  check_scratch(args.scratch, DType::f32, norm_backward_scratch(rows, cols));
  launch_norm_backward({.extent = extent,
                        .dy = matrix_of(args.dy),
                        .x = matrix_of(args.x),
                        .residual = matrix_of(args.residual_gradient),
                        .dx = matrix_of(args.dx),
                        .weight = args.weight.data,
                        .mean = mean_of(args.kind, args.mean),
                        .rstd = args.rstd.as<float>(),
                        .dweight = args.dweight.as<float>(),
                        .dbias = data_or_null<float>(args.dbias),
                        .dx_sums = data_or_null<float>(args.dx_sums),
                        .partials = args.scratch.as<float>(),
                        .max_partials = ceil_div(rows, kNormTile)},
                       stream.native());
  check_launch("norm_backward", args.x);
}

}  // namespace megalith::ops::cuda
