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
  const std::vector<DeviceState> states = device_state();
  for (const DeviceState& state : states) {
    check_fit(checkpoint, {state.name, TensorKind::weights, state.weight});
    if (state.remainder) check_fit(checkpoint, {state.name, TensorKind::master, state.exp_avg});
    if (state.exp_avg) check_fit(checkpoint, {state.name, TensorKind::exp_avg, state.exp_avg});
    if (state.exp_avg_sq) check_fit(checkpoint, {state.name, TensorKind::exp_avg_sq, state.exp_avg_sq});
  }
  for (const DeviceState& state : states) {
    if (state.remainder) {
      restore_master(checkpoint, state);
    } else {
      load_to_device(checkpoint, stream_, {state.name, TensorKind::weights, state.weight});
    }
    if (!optimizer_) continue;
    load_to_device(checkpoint, stream_, {state.name, TensorKind::exp_avg, state.exp_avg});
    load_to_device(checkpoint, stream_, {state.name, TensorKind::exp_avg_sq, state.exp_avg_sq});
  }
}

// The weights follow from their master.
void Engine::restore_master(checkpoint::Loaded& checkpoint, const DeviceState& state) {
  const Shape shape = state.weight.shape;
  const auto elements = static_cast<size_t>(shape.elements());
  std::vector<float> master(elements);
  std::vector<bfloat16> weights(elements);
  std::vector<int16_t> remainder(elements);
  const Tensor joined(master.data(), DType::f32, shape);
  const Tensor high(weights.data(), DType::bf16, shape);
  const Tensor low(remainder.data(), DType::i16, shape);
  checkpoint.load_tensor(checkpoint::TensorKind::master, state.name, joined);
  optim::split_masters(joined, high, low);
  copy(stream_, high, state.weight);
  copy(stream_, low, state.remainder);
  stream_.wait();
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
