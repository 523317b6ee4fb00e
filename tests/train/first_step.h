#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "core/device.h"
#include "engine/engine.h"
#include "model/golden_model.h"
#include "plan/rehearsal.h"

// One step of a small model on any device, and what it computed.

#define MEGALITH_GPU_OR_SKIP() \
  if (find_accelerators().empty()) GTEST_SKIP() << "skipped: there is no GPU that this build can use"

namespace megalith::train::testing {

template <class T>
std::vector<double> values_of(engine::Engine& engine, const Tensor& tensor) {
  std::vector<T> values(static_cast<size_t>(tensor.elements()));
  copy(engine.stream(), tensor, Tensor(values.data(), tensor.dtype, tensor.shape));
  engine.stream().wait();
  std::vector<double> wide;
  for (const T value : values) wide.push_back(widen(value));
  return wide;
}

inline std::vector<double> download(engine::Engine& engine, const Tensor& tensor) {
  return tensor.dtype == DType::f64 ? values_of<double>(engine, tensor) : values_of<float>(engine, tensor);
}

inline void upload(engine::Engine& engine, const std::vector<float>& values, const Tensor& to) {
  dispatch_float(to.dtype, [&]<class T>(std::type_identity<T>) {
    std::vector<T> narrow(static_cast<size_t>(to.elements()));
    for (size_t i = 0; i < values.size(); ++i) narrow[i] = T(values[i]);
    copy(engine.stream(), Tensor(narrow.data(), to.dtype, to.shape), to);
    engine.stream().wait();
  });
}

inline double relative_error(const std::vector<double>& actual, const std::vector<double>& expected) {
  double difference = 0.0;
  double norm = 0.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(actual[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  return std::sqrt(difference / norm);
}

inline data::MicroBatch first_batch(model::testing::Golden& golden) {
  const std::vector<int32_t> tokens = golden.tokens();
  data::MicroBatch batch{.batch = model::testing::kBatch, .length = model::testing::kLength};
  for (int64_t b = 0; b < batch.batch; ++b) {
    const auto* sample = tokens.data() + b * (batch.length + 1);
    batch.inputs.insert(batch.inputs.end(), sample, sample + batch.length);
    batch.targets.insert(batch.targets.end(), sample + 1, sample + 1 + batch.length);
    batch.sample_ids.push_back(b);
  }
  batch.weights.assign(batch.inputs.size(), 1.0F);
  return batch;
}

struct FirstStep {
  double loss = 0.0;
  std::map<std::string, std::vector<double>> gradients;
};

// What a step computes from; null: the engine's own initial weights.
using WeightsOf = std::function<std::vector<float>(const parallel::ParameterSpec&)>;

inline WeightsOf weights_of(model::testing::Golden& golden, const model::ModelConfig& config, DType rounded_to) {
  return [&golden, config, rounded_to](const parallel::ParameterSpec& spec) {
    std::vector<float> values = golden.floats("weights/" + spec.name, model::testing::unpadded(config, spec));
    if (rounded_to == DType::bf16) {
      for (float& value : values) value = static_cast<float>(bfloat16(value));
    }
    return values;
  };
}

// The first step of a model.
inline FirstStep first_step(model::ModelConfig config, Device device, DType compute, const WeightsOf& weights,
                            const data::MicroBatch& batch) {
  config.compute = compute;
  const engine::StageRequest request{.config = config, .batch = batch.batch, .length = batch.length, .device = device};
  const auto world = comm::make_lone_world(device);
  engine::Engine engine({.stage = request}, *world, plan::memory_of_rank(request, 0).arenas);
  engine.initialise(7);
  for (const parallel::Parameter& parameter : engine.parameters().all()) {
    if (weights) upload(engine, weights(*parameter.spec), parameter.weight);
  }
  engine.tune(batch);
  engine.run_step({.weight = static_cast<double>(batch.inputs.size())}, {batch});
  FirstStep step;
  for (const parallel::Parameter& parameter : engine.parameters().all()) {
    std::vector<double>& gradient = step.gradients[parameter.spec->name];
    gradient = download(engine, parameter.gradient);
    // The true gradient of the K bias is zero.
    if (parameter.spec->name.ends_with("qkv.bias")) {
      std::fill_n(gradient.begin() + config.query_width(), config.kv_width(), 0.0);
    }
  }
  step.loss = engine.result_of_step(0).loss;
  return step;
}

}  // namespace megalith::train::testing
