#include "ops/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "ops/cpu/math.h"
#include "ops/cpu/tiles.h"

namespace megalith::ops::cpu {

namespace {

template <class T>
double span_sum_of_squares(const T* x, int64_t count) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(static_cast<Main<T>>(x[i]));
    sum += value * value;
  }
  return sum;
}

// The update's constants, gathered so that the loop divides as little as it can.
template <class M>
struct AdamCoefficients {
  M beta1, beta2, fresh1, fresh2;
  M gradient_factor;
  M step_size;         // lr / bc1
  M inverse_sqrt_bc2;  // sqrt(v / bc2) = sqrt(v) * this
  M epsilon;
  M decay;  // 1 - lr * weight_decay

  AdamCoefficients(const AdamW& args, double weight_decay)
      : beta1(static_cast<M>(args.beta1)),
        beta2(static_cast<M>(args.beta2)),
        fresh1(static_cast<M>(1.0 - args.beta1)),
        fresh2(static_cast<M>(1.0 - args.beta2)),
        gradient_factor(static_cast<M>(args.scalars->gradient_factor)),
        step_size(static_cast<M>(double{args.scalars->learning_rate} / double{args.scalars->bias_correction1})),
        inverse_sqrt_bc2(static_cast<M>(1.0 / std::sqrt(double{args.scalars->bias_correction2}))),
        epsilon(static_cast<M>(args.epsilon)),
        decay(static_cast<M>(1.0 - double{args.scalars->learning_rate} * weight_decay)) {}
};

template <class M>
void adamw_span(const AdamCoefficients<M>& coefficients, M* weights, const M* gradient, M* exp_avg, M* exp_avg_sq,
                int64_t count) {
  const AdamCoefficients<M> k = coefficients;  // a copy cannot alias what the loop writes
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const M g = k.gradient_factor * gradient[i];
    const M m = k.beta1 * exp_avg[i] + k.fresh1 * g;
    const M v = k.beta2 * exp_avg_sq[i] + k.fresh2 * g * g;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    weights[i] = weights[i] * k.decay - k.step_size * m / (std::sqrt(v) * k.inverse_sqrt_bc2 + k.epsilon);
  }
}

// bf16 weights are put together with their remainders a block at a time.
void adamw_split_span(const AdamCoefficients<float>& coefficients, const UpdateTile& tile) {
  constexpr int64_t kBlock = 1024;
  std::array<float, kBlock> master;
  auto* high = static_cast<bfloat16*>(tile.weights);
  auto* low = static_cast<int16_t*>(tile.remainder);
  for (int64_t begin = 0; begin < tile.elements; begin += kBlock) {
    const int64_t count = std::min(kBlock, tile.elements - begin);
    for (int64_t i = 0; i < count; ++i) master[static_cast<size_t>(i)] = join_float(high[begin + i], low[begin + i]);
    adamw_span(coefficients, master.data(), static_cast<const float*>(tile.gradient) + begin,
               static_cast<float*>(tile.exp_avg) + begin, static_cast<float*>(tile.exp_avg_sq) + begin, count);
    for (int64_t i = 0; i < count; ++i) {
      const SplitFloat parts = split_float(master[static_cast<size_t>(i)]);
      high[begin + i] = parts.high;
      low[begin + i] = parts.low;
    }
  }
}

}  // namespace

void set_update_scalars(Stream&, const SetUpdateScalars& args) {
  args.scalars->learning_rate = args.learning_rate;
  args.scalars->bias_correction1 = args.bias_correction1;
  args.scalars->bias_correction2 = args.bias_correction2;
}

void gradient_norm(Stream& stream, const GradientNorm& args) {
  double* partials = args.partials.as<double>();
  dispatch_float(main_dtype(args.tiles.weights), [&]<class M>(std::type_identity<M>) {
    run_tiles(stream, args.tiles.count, [&](int64_t i) {
      const UpdateTile& tile = args.tiles.tiles[i];
      partials[i] = span_sum_of_squares(static_cast<const M*>(tile.gradient), tile.elements);
    });
  });
  args.scalars->squared_norm = std::accumulate(partials, partials + args.tiles.count, 0.0);
  const double* bad = std::find_if(partials, partials + args.tiles.count, [](double x) { return !std::isfinite(x); });
  args.scalars->first_non_finite = bad == partials + args.tiles.count ? -1 : args.tiles.tiles[bad - partials].parameter;
}

void clip_gradients(Stream&, const ClipGradients& args) {
  UpdateScalars& scalars = *args.scalars;
  scalars.gradient_norm = std::sqrt(scalars.squared_norm);
  const double factor = args.max_norm > 0.0 ? args.max_norm / (scalars.gradient_norm + kNormEpsilon) : 1.0;
  scalars.gradient_factor = static_cast<float>(factor < 1.0 ? factor : 1.0);
  const bool skipped_before = args.skip_stays && scalars.skip != 0;
  scalars.skip = skipped_before || !std::isfinite(scalars.gradient_norm) ? 1 : 0;
}

void adamw(Stream& stream, const AdamW& args) {
  if (args.scalars->skip != 0) return;
  dispatch_float(args.tiles.weights, [&]<class T>(std::type_identity<T>) {
    using M = Main<T>;
    run_tiles(stream, args.tiles.count, [&](int64_t i) {
      const UpdateTile& tile = args.tiles.tiles[i];
      const AdamCoefficients<M> coefficients(args, tile.weight_decay);
      if constexpr (std::is_same_v<T, M>) {
        adamw_span(coefficients, static_cast<M*>(tile.weights), static_cast<const M*>(tile.gradient),
                   static_cast<M*>(tile.exp_avg), static_cast<M*>(tile.exp_avg_sq), tile.elements);
      } else {
        adamw_split_span(coefficients, tile);
      }
    });
  });
}

}  // namespace megalith::ops::cpu
