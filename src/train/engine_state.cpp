#include <algorithm>

#include "optim/master_weights.h"
#include "train/engine.h"

namespace megalith::train {

namespace {

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

Tensor on_host(void* data, const Tensor& like) {
  return Tensor(data, like.dtype, like.shape);
}

}  // namespace

std::vector<Engine::DeviceState> Engine::device_state() const {
  std::vector<DeviceState> states;
  for (size_t i = 0; i < store_.all().size(); ++i) {
    const parallel::Parameter& parameter = store_.all()[i];
    DeviceState& state = states.emplace_back(DeviceState{.name = parameter.spec->name, .weight = parameter.weight});
    if (!optimizer_) continue;
    state.remainder = optimizer_->states()[i].remainder;
    state.exp_avg = optimizer_->states()[i].exp_avg;
    state.exp_avg_sq = optimizer_->states()[i].exp_avg_sq;
  }
  return states;
}

// The tensor itself where it is in host memory already.
Tensor Engine::to_host(const Tensor& tensor) {
  if (!tensor || tensor.device == Device::cpu) return tensor;
  const Tensor copied = host_copy_->allocate("copy", tensor.dtype, tensor.shape);
  copy(stream_, tensor, copied);
  return copied;
}

std::vector<checkpoint::NamedTensor> Engine::host_state() {
  return groups_.world == nullptr ? own_host_state() : collected_host_state();
}

std::vector<checkpoint::NamedTensor> Engine::collected_host_state() {
  if (!whole_state_) whole_state_ = std::make_unique<WholeState>(whole_state_parts(), stream_.device());
  if (!host_copy_ && place_ == parallel::Coordinates{}) {
    const DType main = main_dtype(options_.stage.config.compute);
    const bool is_split = options_.stage.config.compute != main;
    int64_t bytes = 0;
    for (const parallel::ParameterSpec& spec : table_.specs()) {
      const int64_t elements = spec.shape.elements();
      bytes += Arena::footprint(options_.stage.config.compute, elements) +
               (is_split ? 3 : 2) * Arena::footprint(main, elements);
    }
    host_copy_ = std::make_unique<Arena>("checkpoint copy", Device::cpu, bytes);
  }
  if (host_copy_) host_copy_->release_to(0);
  std::vector<checkpoint::NamedTensor> tensors;
  whole_state_->collect(stream_, [&](const checkpoint::NamedTensor& whole) {
    const Tensor kept = host_copy_->allocate(whole.name, whole.tensor.dtype, whole.tensor.shape);
    copy(stream_, whole.tensor, kept);
    stream_.wait();
    tensors.push_back({whole.name, whole.kind, kept});
  });
  return tensors;
}

WholeState::Parts Engine::whole_state_parts() const {
  return {.request = {.table = table_,
                      .layout = options_.stage.layout,
                      .layers = options_.stage.config.layers,
                      .tied_embeddings = options_.stage.config.tied_embeddings,
                      .bucket_elements = options_.stage.bucket_elements},
          .store = store_,
          .optimizer = optimizer_.get(),
          .world = groups_.world.get()};
}

std::vector<checkpoint::NamedTensor> Engine::own_host_state() {
  using checkpoint::TensorKind;
  const std::vector<DeviceState> states = device_state();
  if (!host_copy_) {
    int64_t bytes = 0;
    for (const DeviceState& state : states) {
      for (const Tensor& tensor : {state.weight, state.remainder, state.exp_avg, state.exp_avg_sq}) {
        bytes += tensor.device == Device::cpu ? 0 : Arena::footprint(tensor.dtype, tensor.elements());
      }
      if (state.remainder) bytes += Arena::footprint(DType::f32, state.remainder.elements());
    }
    host_copy_ = std::make_unique<Arena>("checkpoint copy", Device::cpu, bytes);
  }
  host_copy_->release_to(0);
  std::vector<checkpoint::NamedTensor> tensors;
  for (const DeviceState& state : states) {
    const Tensor weight = to_host(state.weight);
    tensors.push_back({state.name, TensorKind::weights, weight});
    if (!optimizer_) continue;
    if (const Tensor remainder = to_host(state.remainder)) {
      stream_.wait();
      const Tensor master = host_copy_->allocate(state.name, DType::f32, weight.shape);
      optim::join_masters(weight, remainder, master);
      tensors.push_back({state.name, TensorKind::master, master});
    }
    tensors.push_back({state.name, TensorKind::exp_avg, to_host(state.exp_avg)});
    tensors.push_back({state.name, TensorKind::exp_avg_sq, to_host(state.exp_avg_sq)});
  }
  stream_.wait();
  return tensors;
}

void Engine::restore(checkpoint::Loaded& checkpoint) {
  using checkpoint::TensorKind;
  const DType compute = options_.stage.config.compute;
  const DType main = main_dtype(compute);
  // Weights follow from their master.
  std::vector<std::pair<TensorKind, DType>> kinds = {{TensorKind::weights, compute}};
  if (optimizer_) {
    if (compute != main) kinds = {{TensorKind::master, main}};
    kinds.insert(kinds.end(), {{TensorKind::exp_avg, main}, {TensorKind::exp_avg_sq, main}});
  }
  for (const parallel::ParameterSpec& spec : table_.specs()) {
    for (const auto& [kind, dtype] : kinds)
      check_fit(checkpoint, {spec.name, kind, Tensor(nullptr, dtype, spec.shape)});
  }
  WholeState state(whole_state_parts(), stream_.device());
  std::vector<std::byte> memory;
  for (const parallel::ParameterSpec& spec : table_.specs()) {
    if (!store_.contains(spec.name)) continue;
    for (const auto& [kind, dtype] : kinds) {
      memory.resize(static_cast<size_t>(spec.shape.elements() * size_of(dtype)));
      const Tensor whole(memory.data(), dtype, spec.shape);
      checkpoint.load_tensor(kind, spec.name, whole);
      state.distribute(stream_, {spec.name, kind, whole});
    }
  }
}

void load_to_device(checkpoint::Loaded& checkpoint, Stream& stream, const checkpoint::NamedTensor& tensor) {
  if (stream.device() == Device::cpu) {
    checkpoint.load_tensor(tensor.kind, tensor.name, tensor.tensor);
    return;
  }
  std::vector<std::byte> staging(static_cast<size_t>(tensor.tensor.bytes()));
  const Tensor host = on_host(staging.data(), tensor.tensor);
  checkpoint.load_tensor(tensor.kind, tensor.name, host);
  copy(stream, host, tensor.tensor);
  stream.wait();
}

}  // namespace megalith::train
