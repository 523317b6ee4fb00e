#include "parallel/parameter_store.h"

#include "core/rng.h"
#include "ops/elementwise.h"

namespace megalith::parallel {

ParameterStore::ParameterStore(ParameterTable table, DType compute, Arena& weights, Arena* gradients)
    : table_(std::move(table)) {
  for (const ParameterSpec& spec : table_.specs()) {
    parameters_.push_back({.spec = &spec, .weight = weights.allocate(spec.name, compute, spec.shape)});
  }
  if (gradients == nullptr) return;
  const DType main = main_dtype(compute);
  const int64_t begin = gradients->used();
  for (const bool by_product : {false, true}) {
    for (Parameter& parameter : parameters_) {
      const ParameterSpec& spec = *parameter.spec;
      if (spec.gradient_by_product != by_product) continue;
      parameter.gradient = gradients->allocate(spec.name, main, spec.shape);
      if (!by_product) {
        const int64_t elements = (gradients->used() - begin) / size_of(main);
        void* first = summed_gradients_ ? summed_gradients_.data : parameter.gradient.data;
        summed_gradients_ = Tensor(first, main, {elements}, parameter.gradient.device);
      }
    }
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

void ParameterStore::zero_summed_gradients(Stream& stream) const {
  if (summed_gradients_) ops::fill(stream, {.x = summed_gradients_, .value = 0.0});
}

}  // namespace megalith::parallel
