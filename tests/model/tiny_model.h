#pragma once

#include <memory>
#include <numeric>
#include <vector>

#include "core/rng.h"
#include "model/chunk.h"
#include "model/parameters.h"
#include "zero_gradients.h"

namespace megalith::model::testing {

inline ModelConfig tiny_gpt() {
  return {.layers = 2,
          .hidden = 16,
          .ffn = 64,
          .heads = 4,
          .kv_heads = 4,
          .head_dim = 4,
          .vocabulary = 61,
          .padded_vocabulary = 64,
          .max_positions = 16,
          .init_std = 0.2};
}

inline ModelConfig tiny_llama() {
  return {.layers = 2,
          .hidden = 16,
          .ffn = 48,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 4,
          .vocabulary = 61,
          .padded_vocabulary = 64,
          .max_positions = 16,
          .learned_positions = false,
          .rope_scaling = {.factor = 8.0, .low_freq_factor = 1.0, .high_freq_factor = 4.0, .old_context_len = 64},
          .norm = ops::NormKind::rms_norm,
          .swiglu = true,
          .bias = false,
          .tied_embeddings = false,
          .init_std = 0.2};
}

class TinyModel {
 public:
  TinyModel(const ModelConfig& model_config, int64_t batch, int64_t length, int threads = 1)
      : config(model_config),
        weights("weights", Device::cpu, kRoom),
        gradients("gradients", Device::cpu, kRoom),
        activations("activations", Device::cpu, kRoom),
        scratch("scratch", Device::cpu, kRoom),
        fp8("fp8", Device::cpu, kRoom),
        pool(threads),
        stream(pool),
        parameters(logical_parameters(config)),
        placement(parameters),
        store({.placement = placement, .compute = config.compute}, weights, &gradients),
        precision(config, store, layers_of(config), fp8, fp8),
        rope(make_rope_table(config, stream, activations)),
        chunk(config, store, rope, {.layers = {0, config.layers}},
              {.precision = precision,
               .activations = activations,
               .recompute_room = recompute_room,
               .shape = {.batch = batch, .length = length, .rows = batch * length}}),
        batch_size(batch),
        length_(length) {
    for (Tensor& buffer : residual)
      buffer = activations.allocate("residual", config.compute, {batch * length, config.hidden});
    const auto tokens = static_cast<size_t>(batch * length);
    ids.resize(tokens);
    target_ids.resize(tokens);
    token_weights.assign(tokens, 1.0);
    losses.resize(tokens);
    for (int64_t i = 0; i < batch; ++i) sample_ids.push_back(100 + i);
    store.initialise(stream, 7);
    precision.reset(stream);
    for (size_t i = 0; i < tokens; ++i) {
      ids[i] = static_cast<int32_t>(philox(1, {static_cast<uint32_t>(i), 0, 0, 0})[0] %
                                    static_cast<uint32_t>(config.vocabulary));
      target_ids[i] = static_cast<int32_t>(philox(2, {static_cast<uint32_t>(i), 0, 0, 0})[0] %
                                           static_cast<uint32_t>(config.vocabulary));
    }
  }

  Context context(bool training = true) {
    return {.stream = stream,
            .scratch = scratch,
            .batch = batch_size,
            .length = length_,
            .sample_ids = Tensor(sample_ids.data(), DType::i64, {batch_size}),
            .seed = 3,
            .step = &step,
            .training = training,
            .casts_weights = true};
  }

  static std::vector<int64_t> layers_of(const ModelConfig& config) {
    std::vector<int64_t> layers(static_cast<size_t>(config.layers));
    std::iota(layers.begin(), layers.end(), 0);
    return layers;
  }
  // Scales from the amax of the passes so far.
  void update_scales(ops::Remember remember = ops::Remember::as_newest) {
    ops::update_scales(stream, {.scales = precision.scales(), .remember = remember});
  }

  Tensor ids_tensor() { return {ids.data(), DType::i32, {batch_size * length_}}; }

  // Losses and weights are kept in double here and handed over in the main dtype.
  Targets targets(double scale) {
    gradient_scale = scale;
    const Shape shape{batch_size * length_};
    if (config.compute == DType::f64) {
      return {.ids = Tensor(target_ids.data(), DType::i32, shape),
              .weights = Tensor(token_weights.data(), DType::f64, shape),
              .losses = Tensor(losses.data(), DType::f64, shape),
              .gradient_scale = &gradient_scale};
    }
    weights32.assign(token_weights.begin(), token_weights.end());
    losses32.resize(losses.size());
    return {.ids = Tensor(target_ids.data(), DType::i32, shape),
            .weights = Tensor(weights32.data(), DType::f32, shape),
            .losses = Tensor(losses32.data(), DType::f32, shape),
            .gradient_scale = &gradient_scale};
  }

  double mean_loss() const {
    double sum = 0.0;
    for (size_t i = 0; i < losses.size(); ++i) sum += config.compute == DType::f64 ? losses[i] : losses32[i];
    return sum / static_cast<double>(losses.size());
  }

  double forward_backward() {
    test::zero_gradients(store, stream);
    forward(context(), 1.0 / static_cast<double>(ids.size()));
    backward(context());
    return mean_loss();
  }
  void forward(const Context& with, double scale) { chunk.forward(with, pass(scale)); }
  void backward(const Context& with) { chunk.backward(with, pass(gradient_scale)); }

  double evaluate(bool training) {
    chunk.evaluate(context(training), pass(1.0));
    return mean_loss();
  }

  Pass pass(double scale) {
    return {.input = residual[0],
            .output = residual[1],
            .gradient = residual[2],
            .ids = ids_tensor(),
            .targets = targets(scale)};
  }

  uint64_t step = 5;
  double gradient_scale = 1.0;
  ModelConfig config;
  static constexpr int64_t kRoom = int64_t{16} << 20;
  Arena weights, gradients, activations, scratch, fp8;
  ThreadPool pool;
  Stream stream;
  parallel::ParameterTable parameters;
  parallel::Placement placement;
  parallel::ParameterStore store;
  Precision precision;
  RopeTable rope;
  RecomputeRoom recompute_room;
  Chunk chunk;
  std::array<Tensor, 3> residual;
  int64_t batch_size;
  int64_t length_;
  std::vector<int32_t> ids, target_ids;
  std::vector<double> token_weights, losses;
  std::vector<float> weights32, losses32;
  std::vector<int64_t> sample_ids;
};

// ||a - b|| / ||b||, of any floating-point tensors of equal size.
inline double relative_error(const Tensor& a, const Tensor& b) {
  double difference = 0.0;
  double norm = 0.0;
  const auto value = [](const Tensor& t, int64_t i) {
    return dispatch_float(t.dtype, [&]<class T>(std::type_identity<T>) { return widen(t.as<T>()[i]); });
  };
  for (int64_t i = 0; i < b.elements(); ++i) {
    difference += std::pow(value(a, i) - value(b, i), 2);
    norm += std::pow(value(b, i), 2);
  }
  return std::sqrt(difference) / std::max(std::sqrt(norm), 1e-30);
}

}  // namespace megalith::model::testing
