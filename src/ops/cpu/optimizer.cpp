#include "ops/optimizer.h"

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

  explicit AdamCoefficients(const AdamW& args)
      : beta1(static_cast<M>(args.beta1)),
        beta2(static_cast<M>(args.beta2)),
        fresh1(static_cast<M>(1.0 - args.beta1)),
        fresh2(static_cast<M>(1.0 - args.beta2)),
        gradient_factor(static_cast<M>(args.scalars->gradient_factor)),
        step_size(static_cast<M>(double{args.scalars->learning_rate} / double{args.scalars->bias_correction1})),
        inverse_sqrt_bc2(static_cast<M>(1.0 / std::sqrt(double{args.scalars->bias_correction2}))),
        epsilon(static_cast<M>(args.epsilon)),
        decay(static_cast<M>(1.0 - double{args.scalars->learning_rate} * args.weight_decay)) {}
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

void sum_of_squares(Stream& stream, const SumOfSquares& args) {
  const int64_t elements = args.x.elements();
  check_vector(args.x, "x", args.x.dtype, elements);
  check_vector(args.partials, "partials", DType::f64, ceil_div(elements, kSquareTile));
  dispatch_float(args.x.dtype, [&]<class T>(std::type_identity<T>) {
    run_pieces(stream, elements, kSquareTile, [&](int64_t begin, int64_t end) {
      args.partials.as<double>()[begin / kSquareTile] = span_sum_of_squares(args.x.as<T>() + begin, end - begin);
    });
  });
}

void adamw(Stream& stream, const AdamW& args) {
  const int64_t elements = args.weights.elements();
  const DType main = main_dtype(args.weights.dtype);
  check_vector(args.weights, "weights", args.weights.dtype, elements);
  check_vector(args.master, "master", main, elements);
  check_vector(args.gradient, "gradient", main, elements);
  check_vector(args.exp_avg, "exp_avg", main, elements);
  check_vector(args.exp_avg_sq, "exp_avg_sq", main, elements);
  MEGALITH_CHECK(args.scalars != nullptr, "no update scalars");
  if (args.scalars->skip != 0) return;
  dispatch_float(args.weights.dtype, [&]<class T>(std::type_identity<T>) {
    using M = Main<T>;
    const AdamCoefficients<M> coefficients(args);
    run_pieces(stream, elements, kTileElements, [&](int64_t begin, int64_t end) {
      M* master = args.master.as<M>() + begin;
      adamw_span(coefficients, master, args.gradient.as<M>() + begin, args.exp_avg.as<M>() + begin,
                 args.exp_avg_sq.as<M>() + begin, end - begin);
      if (args.weights.data != args.master.data) round_span(master, args.weights.as<T>() + begin, end - begin);
    });
  });
}

}  // namespace megalith::ops::cpu
