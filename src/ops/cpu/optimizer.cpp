#include "ops/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/cpu/check.h"
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

template <class T>
void round_span(const Main<T>* master, T* weights, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) weights[i] = round_to<T>(master[i]);
}

}  // namespace

void set_update_scalars(Stream&, const SetUpdateScalars& args) {
  args.scalars->learning_rate = args.learning_rate;
  args.scalars->bias_correction1 = args.bias_correction1;
  args.scalars->bias_correction2 = args.bias_correction2;
}

void gradient_norm(Stream& stream, const GradientNorm& args) {
  check_vector(args.partials, "partials", DType::f64, args.tiles.count);
  MEGALITH_CHECK(args.scalars != nullptr, "no update scalars");
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
  MEGALITH_CHECK(args.scalars != nullptr, "no update scalars");
  if (args.scalars->skip != 0) return;
  dispatch_float(args.tiles.weights, [&]<class T>(std::type_identity<T>) {
    using M = Main<T>;
    run_tiles(stream, args.tiles.count, [&](int64_t i) {
      const UpdateTile& tile = args.tiles.tiles[i];
      auto* master = static_cast<M*>(tile.master);
      adamw_span(AdamCoefficients<M>(args, tile.weight_decay), master, static_cast<const M*>(tile.gradient),
                 static_cast<M*>(tile.exp_avg), static_cast<M*>(tile.exp_avg_sq), tile.elements);
      if (tile.weights != tile.master) round_span(master, static_cast<T*>(tile.weights), tile.elements);
    });
  });
}

}  // namespace megalith::ops::cpu
