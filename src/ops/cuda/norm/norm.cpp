#include "ops/norm.h"

#include "ops/cuda/launch.h"
#include "ops/cuda/launch_args.h"
#include "ops/cuda/norm/norm_launch.h"

namespace megalith::ops::cuda {

namespace {

// LayerNorm's; RMSNorm has none, which is how the kernels tell the two apart.
float* mean_of(NormKind kind, const Tensor& mean) {
  return kind == NormKind::layer_norm ? mean.as<float>() : nullptr;
}

}  // namespace

void norm_forward(Stream& stream, const NormForward& args) {
  const NormForwardLaunch launch{.extent = extent_of(args.x),
                                 .x = matrix_of(args.x),
                                 .weight = args.weight.data,
                                 .bias = args.bias.data,
                                 .mean = mean_of(args.kind, args.mean),
                                 .rstd = args.rstd.as<float>(),
                                 .epsilon = static_cast<float>(args.epsilon)};
  if (args.y.slot) {
    launch_norm_forward(launch, fp8_of(args.y), stream.native());
  } else {
    launch_norm_forward(launch, matrix_of(args.y.rows), stream.native());
  }
  check_launch("norm_forward", args.x);
}

void norm_backward(Stream& stream, const NormBackward& args) {
  launch_norm_backward({.extent = extent_of(args.x),
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
                        .max_partials = ceil_div(args.x.rows(), kNormTile)},
                       stream.native());
  check_launch("norm_backward", args.x);
}

}  // namespace megalith::ops::cuda
