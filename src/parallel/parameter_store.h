#pragma once

#include <vector>

#include "core/arena.h"
#include "core/stream.h"
#include "parallel/parameter_table.h"

namespace megalith::parallel {

// A parameter as this rank holds it.
struct Parameter {
  const ParameterSpec* spec = nullptr;
  Tensor weight;    // compute dtype
  Tensor gradient;  // main dtype; absent where nothing is trained
};

// The parameters of this rank, laid out back to back in their arenas. Gradients that are summed from zero come before
// those that a product overwrites, so that one fill clears them.
class ParameterStore {
 public:
  // `gradients` may be null: evaluation and generation hold weights alone.
  ParameterStore(ParameterTable table, DType compute, Arena& weights, Arena* gradients);
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  const Parameter& operator[](std::string_view name) const { return parameters_[table_.index_of(name)]; }
  const std::vector<Parameter>& all() const { return parameters_; }
  const ParameterTable& table() const { return table_; }

  // Values from the specs, keyed by (seed, logical name, global element).
  void initialise(Stream& stream, uint64_t seed) const;
  void zero_gradients(Stream& stream) const;
  // Only those that are added to from the first micro batch on (Context::first_of_step).
  void zero_summed_gradients(Stream& stream) const;

 private:
  ParameterTable table_;
  std::vector<Parameter> parameters_;
  Tensor summed_gradients_;
};

}  // namespace megalith::parallel
