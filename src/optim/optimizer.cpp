#include "optim/optimizer.h"

#include <cmath>
#include <numeric>

#include "ops/elementwise.h"

namespace megalith::optim {

namespace {
// Megatron's guard against division by a zero norm.
constexpr double kNormEpsilon = 1e-6;
}  // namespace

Optimizer::Optimizer(const config::Optim& config, double clip_norm, const parallel::ParameterStore& store,
                     Arena& masters, Arena& moments)
    : config_(config), clip_norm_(clip_norm), store_(store) {
  int64_t most_partials = 0;
  for (const parallel::Parameter& parameter : store.all()) {
    const DType main = parameter.gradient.dtype;
    const Shape& shape = parameter.weight.shape;
    const bool own_master = parameter.weight.dtype != main;
    states_.push_back({.master = own_master ? masters.allocate(parameter.spec->name, main, shape) : parameter.weight,
                       .exp_avg = moments.allocate(parameter.spec->name, main, shape),
                       .exp_avg_sq = moments.allocate(parameter.spec->name, main, shape)});
    most_partials = std::max(most_partials, ceil_div(shape.elements(), ops::kSquareTile));
  }
  partials_.resize(static_cast<size_t>(most_partials));
}

void Optimizer::initialise(Stream& stream) {
  for (size_t i = 0; i < states_.size(); ++i) {
    const Tensor weight = store_.all()[i].weight;
    if (states_[i].master.data != weight.data) ops::cast(stream, {.x = weight, .y = states_[i].master});
    ops::fill(stream, {.x = states_[i].exp_avg, .value = 0.0});
    ops::fill(stream, {.x = states_[i].exp_avg_sq, .value = 0.0});
  }
}

std::vector<double> Optimizer::squared_norms(Stream& stream) {
  std::vector<double> sums;
  for (const parallel::Parameter& parameter : store_.all()) {
    const int64_t tiles = ceil_div(parameter.gradient.elements(), ops::kSquareTile);
    ops::sum_of_squares(stream, {.x = parameter.gradient, .partials = Tensor(partials_.data(), DType::f64, {tiles})});
    sums.push_back(std::accumulate(partials_.begin(), partials_.begin() + tiles, 0.0));
  }
  return sums;
}

UpdateResult Optimizer::update(Stream& stream, double learning_rate, int64_t update) {
  const std::vector<double> squares = squared_norms(stream);
  UpdateResult result;
  double sum = 0.0;
  for (size_t i = 0; i < squares.size(); ++i) {
    if (!std::isfinite(squares[i]) && !result.skipped) {
      result.skipped = true;
      result.first_non_finite = store_.all()[i].spec->name;
    }
    sum += squares[i];
  }
  result.gradient_norm = std::sqrt(sum);

  const double factor = clip_norm_ > 0.0 ? clip_norm_ / (result.gradient_norm + kNormEpsilon) : 1.0;
  scalars_ = {.learning_rate = static_cast<float>(learning_rate),
              .bias_correction1 = static_cast<float>(1.0 - std::pow(config_.betas[0], static_cast<double>(update))),
              .bias_correction2 = static_cast<float>(1.0 - std::pow(config_.betas[1], static_cast<double>(update))),
              .gradient_factor = static_cast<float>(factor < 1.0 ? factor : 1.0),
              .skip = result.skipped ? 1 : 0};
  for (size_t i = 0; i < states_.size(); ++i) {
    const parallel::Parameter& parameter = store_.all()[i];
    ops::adamw(stream, {.weights = parameter.weight,
                        .master = states_[i].master,
                        .gradient = parameter.gradient,
                        .exp_avg = states_[i].exp_avg,
                        .exp_avg_sq = states_[i].exp_avg_sq,
                        .scalars = &scalars_,
                        .beta1 = config_.betas[0],
                        .beta2 = config_.betas[1],
                        .epsilon = config_.eps,
                        .weight_decay = parameter.spec->weight_decay ? config_.weight_decay : 0.0});
  }
  return result;
}

}  // namespace megalith::optim
