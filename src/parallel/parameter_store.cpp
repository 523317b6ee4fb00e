#include "parallel/parameter_store.h"

#include "core/rng.h"
#include "ops/elementwise.h"

namespace megalith::parallel {

ParameterStore::ParameterStore(ParameterTable table, DType compute, Arena& weights, Arena* gradients)
    : table_(std::move(table)) {
  for (const ParameterSpec& spec : table_.specs()) {
    Parameter parameter{.spec = &spec, .weight = weights.allocate(spec.name, compute, spec.shape)};
    if (gradients != nullptr) parameter.gradient = gradients->allocate(spec.name, main_dtype(compute), spec.shape);
    parameters_.push_back(parameter);
  }
}

void ParameterStore::initialise(Stream& stream, uint64_t seed) const {
  for (const Parameter& parameter : parameters_) {
    const ParameterSpec& spec = *parameter.spec;
    if (spec.initial == Initial::normal) {
      ops::normal_init(stream, {.x = parameter.weight,
                                .key = named_key(seed, spec.name),
                                .std = spec.std,
                                .global_cols = parameter.weight.cols()});
    } else {
      ops::fill(stream, {.x = parameter.weight, .value = spec.initial == Initial::ones ? 1.0 : 0.0});
    }
  }
}

void ParameterStore::zero_gradients(Stream& stream) const {
  for (const Parameter& parameter : parameters_) ops::fill(stream, {.x = parameter.gradient, .value = 0.0});
}

}  // namespace megalith::parallel
