#include "train/engine.h"

#include <algorithm>
#include <cstring>

#include "model/parameters.h"

namespace megalith::train {

Arenas::Arenas(const cost::MemoryTable& table, bool training)
    : weights("weights", Device::cpu, table.bytes_of("weights")),
      gradients("gradients", Device::cpu, training ? table.bytes_of("gradients") : 0),
      masters("master weights", Device::cpu, training ? table.bytes_of("master weights") : 0),
      moments("moments", Device::cpu, training ? table.bytes_of("moments") : 0),
      activations("activations", Device::cpu, table.bytes_of("activations")),
      scratch("scratch", Device::cpu, table.bytes_of("scratch")),
      batch("batch", Device::cpu, table.bytes_of("batch")) {}

namespace {

void copy_ids(const std::vector<int32_t>& from, const Tensor& to) {
  std::memcpy(to.data, from.data(), static_cast<size_t>(to.bytes()));
}

// A run goes on with the model and the precision that it was started with.
void check_fit(const checkpoint::Loaded& checkpoint, const checkpoint::NamedTensor& wanted) {
  const std::vector<checkpoint::TensorInfo>& held = checkpoint.manifest().tensors;
  const auto found = std::find_if(held.begin(), held.end(), [&](const checkpoint::TensorInfo& info) {
    return info.kind == wanted.kind && info.name == wanted.name;
  });
  if (found == held.end()) {
    user_error("{} does not fit this config: it has no {} of {}", checkpoint.path().string(),
               checkpoint::name_of(wanted.kind), wanted.name);
  }
  if (found->shape != wanted.tensor.shape || found->dtype != wanted.tensor.dtype) {
    user_error("{} does not fit this config: {} of {} are {} {} there, {} {} here", checkpoint.path().string(),
               checkpoint::name_of(wanted.kind), wanted.name, name_of(found->dtype), to_string(found->shape),
               name_of(wanted.tensor.dtype), to_string(wanted.tensor.shape));
  }
}

}  // namespace

Engine::Engine(const EngineOptions& options)
    : options_(options),
      memory_(model::memory_of_stage({.config = options.model,
                                      .batch = options.batch,
                                      .length = options.length,
                                      .cpu_threads = options.threads,
                                      .training = options.training},
                                     0)),
      arenas_(memory_, options.training),
      pool_(options.threads),
      stream_(pool_),
      store_(model::logical_parameters(options.model), options.model.compute, arenas_.weights,
             options.training ? &arenas_.gradients : nullptr),
      chunk_(options_.model, store_, arenas_.activations, options.batch, options.length) {
  if (options.training) {
    optimizer_ =
        std::make_unique<optim::Optimizer>(options.optim, options.clip_norm, store_, arenas_.masters, arenas_.moments);
  }
  const int64_t tokens = options.batch * options.length;
  const DType main = main_dtype(options.model.compute);
  ids_ = arenas_.batch.allocate("ids", DType::i32, {tokens});
  targets_ = {.ids = arenas_.batch.allocate("targets", DType::i32, {tokens}),
              .weights = arenas_.batch.allocate("weights", main, {tokens}),
              .losses = arenas_.batch.allocate("losses", main, {tokens})};
  document_starts_ = arenas_.batch.allocate("document_starts", DType::i32, {tokens});
  positions_ = arenas_.batch.allocate("positions", DType::i32, {tokens});
  sample_ids_ = arenas_.batch.allocate("sample_ids", DType::i64, {options.batch});
}

void Engine::initialise(uint64_t seed) {
  store_.initialise(stream_, seed);
  if (optimizer_) optimizer_->initialise(stream_);
}

double Engine::forward(const data::MicroBatch& micro_batch, int64_t step, double scale) {
  take(micro_batch);
  step_ = step;
  targets_.gradient_scale = scale;
  chunk_.forward(context(true, step), ids_, targets_);
  return sum_of_losses();
}

void Engine::backward() {
  chunk_.backward(context(true, step_), ids_);
}

double Engine::evaluate(const data::MicroBatch& micro_batch) {
  take(micro_batch);
  chunk_.evaluate(context(false, 0), ids_, targets_);
  return sum_of_losses();
}

model::Context Engine::context(bool training, int64_t step) {
  return {.stream = stream_,
          .scratch = arenas_.scratch,
          .batch = options_.batch,
          .length = options_.length,
          .sample_ids = sample_ids_,
          .document_starts = has_document_starts_ ? document_starts_ : Tensor(),
          .positions = has_positions_ ? positions_ : Tensor(),
          .seed = options_.seed,
          .step = static_cast<uint64_t>(step),
          .training = training};
}

void Engine::take(const data::MicroBatch& micro_batch) {
  MEGALITH_CHECK(micro_batch.batch == options_.batch && micro_batch.length == options_.length,
                 "micro batch of {} x {} tokens, engine of {} x {}", micro_batch.batch, micro_batch.length,
                 options_.batch, options_.length);
  copy_ids(micro_batch.inputs, ids_);
  copy_ids(micro_batch.targets, targets_.ids);
  std::memcpy(sample_ids_.data, micro_batch.sample_ids.data(), static_cast<size_t>(sample_ids_.bytes()));
  has_document_starts_ = !micro_batch.document_starts.empty();
  if (has_document_starts_) copy_ids(micro_batch.document_starts, document_starts_);
  has_positions_ = !micro_batch.position_ids.empty();
  if (has_positions_) copy_ids(micro_batch.position_ids, positions_);
  dispatch_float(targets_.weights.dtype, [&]<class T>(std::type_identity<T>) {
    T* weights = targets_.weights.as<T>();
    for (size_t i = 0; i < micro_batch.weights.size(); ++i) weights[i] = T(micro_batch.weights[i]);
  });
}

double Engine::sum_of_losses() const {
  return dispatch_float(targets_.losses.dtype, [&]<class T>(std::type_identity<T>) {
    const T* losses = targets_.losses.as<T>();
    double sum = 0.0;
    for (int64_t i = 0; i < targets_.losses.elements(); ++i) sum += widen(losses[i]);
    return sum;
  });
}

std::vector<checkpoint::NamedTensor> Engine::state() const {
  using checkpoint::TensorKind;
  std::vector<checkpoint::NamedTensor> tensors;
  for (size_t i = 0; i < store_.all().size(); ++i) {
    const parallel::Parameter& parameter = store_.all()[i];
    const std::string& name = parameter.spec->name;
    tensors.push_back({name, TensorKind::weights, parameter.weight});
    if (!optimizer_) continue;
    const optim::State& state = optimizer_->states()[i];
    if (state.master.data != parameter.weight.data) tensors.push_back({name, TensorKind::master, state.master});
    tensors.push_back({name, TensorKind::exp_avg, state.exp_avg});
    tensors.push_back({name, TensorKind::exp_avg_sq, state.exp_avg_sq});
  }
  return tensors;
}

void Engine::restore(checkpoint::Loaded& checkpoint) {
  const std::vector<checkpoint::NamedTensor> wanted = state();
  for (const checkpoint::NamedTensor& tensor : wanted) check_fit(checkpoint, tensor);
  for (const checkpoint::NamedTensor& tensor : wanted) checkpoint.load_tensor(tensor.kind, tensor.name, tensor.tensor);
}

}  // namespace megalith::train
