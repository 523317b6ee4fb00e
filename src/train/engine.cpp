#include "train/engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/device.h"
#include "core/trace.h"
#include "model/parameters.h"
#include "ops/sum.h"
#include "optim/master_weights.h"

namespace megalith::train {

Arenas::Arenas(Device device, const cost::MemoryTable& table, bool training)
    : weights("weights", device, table.bytes_of("weights")),
      gradients("gradients", device, training ? table.bytes_of("gradients") : 0),
      masters("master weights", device, training ? table.bytes_of("master weights") : 0),
      moments("moments", device, training ? table.bytes_of("moments") : 0),
      optimizer("optimizer", device, training ? table.bytes_of("optimizer") : 0),
      activations("activations", device, table.bytes_of("activations")),
      scratch("scratch", device, table.bytes_of("scratch")),
      batch("batch", device, table.bytes_of("batch")) {}

int64_t Arenas::bytes() const {
  int64_t sum = 0;
  for (const Arena* arena : {&weights, &gradients, &masters, &moments, &optimizer, &activations, &scratch, &batch}) {
    sum += arena->capacity();
  }
  return sum;
}

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

// What end_step() copies to the host.
struct StepTelling {
  ops::UpdateScalars update;
  double loss_sum;
};

Tensor on_host(void* data, const Tensor& like) {
  return Tensor(data, like.dtype, like.shape);
}

}  // namespace

Engine::Engine(const EngineOptions& options)
    : options_(options),
      pool_(options.threads),
      stream_(pool_, options.device),
      used_before_(options.device == Device::cuda ? device_memory().used : 0),
      memory_(model::memory_of_stage({.config = options.model,
                                      .batch = options.batch,
                                      .length = options.length,
                                      .device = options.device,
                                      .threads = options.threads,
                                      .training = options.training},
                                     0)),
      arenas_(options.device, memory_, options.training),
      store_(model::logical_parameters(options.model), options.model.compute, arenas_.weights,
             options.training ? &arenas_.gradients : nullptr),
      chunk_(options_.model, store_, stream_, arenas_.activations, options.batch, options.length),
      batch_(stream_, arenas_.batch, main_dtype(options.model.compute), options.batch, options.length,
             model::document_room(options.model, options.device, options.batch * options.length)) {
  if (options.training) {
    optimizer_ = std::make_unique<optim::Optimizer>(
        options.optimizer, store_, stream_,
        optim::OptimizerArenas{.masters = arenas_.masters, .moments = arenas_.moments, .table = arenas_.optimizer});
  }
  losses_ = arenas_.batch.allocate("losses", main_dtype(options.model.compute), {options.batch * options.length});
  const Tensor scalars = arenas_.batch.allocate("step scalars", DType::f64, {3});
  scalars_ = static_cast<ops::StepScalars*>(scalars.data);
  static_assert(sizeof(ops::StepScalars) == 2 * sizeof(double));
  loss_sum_ = Tensor(scalars.as<double>() + 2, DType::f64, {1}, options.device);
  for (StepSlot& slot : slots_) {
    slot.memory = std::make_unique<StagingMemory>(options.device, sizeof(StepTelling), "step results");
  }
}

Engine::~Engine() {
  try {
    stream_.wait();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): whoever used the engine has seen it
  }
}

void Engine::initialise(uint64_t seed) {
  store_.initialise(stream_, seed);
  if (optimizer_) optimizer_->initialise(stream_);
}

void Engine::make_plans(const data::MicroBatch& example) {
  if (stream_.device() == Device::cpu) return;
  {
    const ops::PlanTuning tuning(stream_);
    ops::set_step_scalars(stream_, {.scalars = scalars_, .values = {.step = 0, .gradient_scale = 1e-4}});
    batch_.upload(stream_, example);
    for (const bool first : {true, false}) {
      if (!options_.training) {
        chunk_.evaluate(context(false), batch_.ids(), targets());
        continue;
      }
      first_of_step_ = first;
      chunk_.forward(context(true), batch_.ids(), targets());
      chunk_.backward(context(true), batch_.ids());
    }
    stream_.wait();
  }
  const int64_t outside = device_memory().used - used_before_ - arenas_.bytes();
  for (cost::MemoryRow& row : memory_.rows) {
    if (row.arena == cost::kOutsideArenas) row.bytes = used_before_ + outside;
  }
}

void Engine::begin_step(int64_t step, double scale) {
  StepSlot& slot = current_slot();
  slot.scale = scale;
  slot.backward_count = 0;
  first_of_step_ = true;
  ops::set_step_scalars(
      stream_, {.scalars = scalars_, .values = {.step = static_cast<uint64_t>(step), .gradient_scale = scale}});
  store_.zero_summed_gradients(stream_);
}

void Engine::run(RecordedWork& work, const std::function<void()>& body) {
  if (options_.records_graphs) {
    work.run(stream_, body);
  } else {
    body();
  }
}

void Engine::forward(const data::MicroBatch& micro_batch) {
  batch_.upload(stream_, micro_batch);
  run(recorded().forward, [&] {
    chunk_.forward(context(true), batch_.ids(), targets());
    ops::sum(stream_, {.x = losses_, .total = loss_sum_, .adds = !first_of_step_});
  });
}

void Engine::backward() {
  StepSlot& slot = current_slot();
  if (slot.backward_count == slot.backwards.size()) slot.backwards.emplace_back();
  auto& [begin, end] = slot.backwards[slot.backward_count++];
  begin.record(stream_);
  run(recorded().backward, [&] { chunk_.backward(context(true), batch_.ids()); });
  end.record(stream_);
  first_of_step_ = false;
}

void Engine::end_step(double learning_rate, int64_t update) {
  const TraceRange range("update");
  optimizer_->update(stream_, learning_rate, update);
  StepSlot& slot = current_slot();
  const Tensor scalars = optimizer_->scalars();
  copy(stream_, scalars, on_host(slot.memory->data(), scalars));
  copy(stream_, loss_sum_, on_host(slot.memory->data() + offsetof(StepTelling, loss_sum), loss_sum_));
  slot.done.record(stream_);
  ++steps_ended_;
}

StepResult Engine::result_of_step(int steps_back) {
  MEGALITH_CHECK(static_cast<size_t>(steps_back) < kSlots && steps_ended_ > static_cast<size_t>(steps_back),
                 "{} steps back of {}", steps_back, steps_ended_);
  const StepSlot& slot = slots_[(steps_ended_ - 1 - static_cast<size_t>(steps_back)) % kSlots];
  slot.done.wait();
  StepTelling telling;
  std::memcpy(&telling, slot.memory->data(), sizeof(telling));
  StepResult result{.loss = telling.loss_sum * slot.scale,
                    .update = {.gradient_norm = telling.update.gradient_norm, .skipped = telling.update.skip != 0}};
  for (size_t i = 0; i < slot.backward_count; ++i) {
    result.backward_seconds += StreamMark::seconds_between(slot.backwards[i].first, slot.backwards[i].second);
  }
  if (telling.update.first_non_finite >= 0) {
    result.update.first_non_finite = store_.all()[static_cast<size_t>(telling.update.first_non_finite)].spec->name;
  }
  return result;
}

double Engine::evaluate(const data::MicroBatch& micro_batch) {
  batch_.upload(stream_, micro_batch);
  chunk_.evaluate(context(false), batch_.ids(), targets());
  ops::sum(stream_, {.x = losses_, .total = loss_sum_});
  double total = 0.0;
  copy(stream_, loss_sum_, on_host(&total, loss_sum_));
  stream_.wait();
  return total;
}

model::Context Engine::context(bool training) {
  return {.stream = stream_,
          .scratch = arenas_.scratch,
          .batch = options_.batch,
          .length = options_.length,
          .sample_ids = batch_.sample_ids(),
          .document_starts = batch_.document_starts(),
          .document_bounds = batch_.document_bounds(),
          .positions = batch_.positions(),
          .seed = options_.seed,
          .step = &scalars_->step,
          .training = training,
          .first_of_step = first_of_step_,
          .deterministic = options_.deterministic};
}

model::Targets Engine::targets() const {
  return {.ids = batch_.targets(),
          .weights = batch_.weights(),
          .losses = losses_,
          .gradient_scale = &scalars_->gradient_scale};
}

Tensor Engine::scratch_memory() const {
  return arenas_.activations.whole();
}

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
