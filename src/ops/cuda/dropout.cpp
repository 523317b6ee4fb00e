#include "ops/dropout.h"

#include "ops/cuda/dropout_launch.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/launch_args.h"
#include "ops/elementwise.h"

namespace megalith::ops::cuda {

namespace {

// What a kernel draws with. The values of first_positions are not looked at.
DropoutDraw draw_of(const Dropout& dropout) {
  const int64_t rows = dropout.sample_ids.elements() * dropout.length;
  MEGALITH_CHECK(rows < int64_t{1} << 32, "dropout of {} rows, which kernels count in 32 bits", rows);
  return {.site_key = mix_key(dropout.seed, dropout.site),
          .threshold = dropout_threshold(dropout.probability),
          .scale = static_cast<float>(1.0 / (1.0 - dropout.probability)),
          .step = dropout.step,
          .sample_ids = dropout.sample_ids.as<int64_t>(),
          .first_positions = data_or_null<int32_t>(dropout.first_positions),
          .length = dropout.length,
          .first_row = dropout.first_row};
}

}  // namespace

void dropout_add(Stream& stream, const DropoutAdd& args) {
  const bool drops = args.dropout.probability > 0.0;
  if (!drops && args.residual) return cuda::add(stream, {.a = args.x, .b = args.residual, .y = args.y});
  if (!drops && args.x.data == args.y.data) return;
  if (!drops) return cuda::cast(stream, {.x = args.x, .y = args.y});
  launch_dropout_add({.extent = extent_of(args.x),
                      .x = matrix_of(args.x),
                      .residual = matrix_of(args.residual),
                      .y = matrix_of(args.y),
                      .draw = draw_of(args.dropout)},
                     stream.native());
  check_launch("dropout_add", args.x);
}

}  // namespace megalith::ops::cuda
