#include "train/engine.h"

#include <algorithm>
#include <cstring>

#include "core/device.h"
#include "core/trace.h"
#include "model/parameters.h"
#include "train/tell.h"

namespace megalith::train {

Arenas::Arenas(Device device, const cost::MemoryTable& table, bool training)
    : weights("weights", device, table.bytes_of("weights")),
      gradients("gradients", device, training ? table.bytes_of("gradients") : 0),
      masters("master weights", device, training ? table.bytes_of("master weights") : 0),
      moments("moments", device, training ? table.bytes_of("moments") : 0),
      optimizer("optimizer", device, training ? table.bytes_of("optimizer") : 0),
      activations("activations", device, table.bytes_of("activations")),
      reduction("reduction", device, training ? table.bytes_of("reduction") : 0),
      scratch("scratch", device, table.bytes_of("scratch")),
      batch("batch", device, table.bytes_of("batch")) {}

int64_t Arenas::bytes() const {
  int64_t sum = 0;
  for (const Arena* arena :
       {&weights, &gradients, &masters, &moments, &optimizer, &activations, &reduction, &scratch, &batch}) {
    sum += arena->capacity();
  }
  return sum;
}

namespace {

Tensor on_host(void* data, const Tensor& like) {
  return Tensor(data, like.dtype, like.shape);
}

}  // namespace

Engine::Engine(const EngineOptions& options, comm::World* world)
    : options_(options),
      place_(parallel::Mesh(options.stage.layout).coordinates_of(world != nullptr ? world->rank() : 0)),
      groups_(world != nullptr ? parallel::make_groups(*world, {.layout = options.stage.layout,
                                                                .kv_heads = options.stage.config.kv_heads,
                                                                .tied_embeddings = options.stage.config.tied_embeddings,
                                                                .deadline = options.deadline})
                               : parallel::Groups{}),
      pool_(options.stage.threads),
      stream_(pool_, options.stage.device),
      used_before_(options.stage.device == Device::cuda ? device_memory().used : 0),
      table_(model::logical_parameters(options.stage.config)),
      placement_(place_parameters(options.stage, table_, place_.pp, place_.tp)),
      plan_(model::StagePlans(options.stage).of_stage(place_.pp, placement_.chunks_of_buckets())),
      memory_(memory_of_plan(options.stage, plan_, placement_, replica())),
      arenas_(options.stage.device, memory_, options.stage.training),
      store_({.placement = placement_, .compute = options.stage.config.compute, .replica = replica()}, arenas_.weights,
             options.stage.training ? &arenas_.gradients : nullptr) {
  const Tensor scalars =
      arenas_.batch.allocate("step scalars", DType::f64, {static_cast<int64_t>(sizeof(ops::StepScalars) / 8) + kSums});
  scalars_ = static_cast<ops::StepScalars*>(scalars.data);
  sums_ = reinterpret_cast<StepSums*>(scalars_ + 1);
  if (options.stage.training) {
    sync_ = std::make_unique<parallel::ReplicaSync>(
        store_, groups_, parallel::ReplicaSyncOptions{.reduces_in_bf16 = options.stage.reduces_in_bf16},
        arenas_.reduction);
    optimizer_ = std::make_unique<optim::Optimizer>(
        options.optimizer, store_, stream_,
        optim::OptimizerArenas{.masters = arenas_.masters, .moments = arenas_.moments, .table = arenas_.optimizer});
  }
  stage_ = std::make_unique<Stage>(
      StageParts{.plan = plan_,
                 .layout = options_.stage.layout,
                 .store = store_,
                 .groups = groups_,
                 .sync = sync_.get(),
                 .stream = stream_,
                 .activations = arenas_.activations,
                 .scratch = arenas_.scratch,
                 .batch = arenas_.batch,
                 .deferred_bytes_per_layer = memory_.deferred_bytes_per_layer,
                 .document_room = document_room(options.stage, plan_),
                 .orders_rows = orders_rows(options.stage, plan_),
                 .split = {.length = options.stage.length, .ranks = options.stage.layout.context, .rank = place_.cp},
                 .scalars = scalars_,
                 .seed = options.seed,
                 .deterministic = options.deterministic});
  stage_->set_recording(options.records_graphs);
  for (StepSlot& slot : slots_) {
    slot.memory = std::make_unique<StagingMemory>(options.stage.device, sizeof(StepTelling), "step results");
  }
}

Engine::~Engine() {
  try {
    stream_.wait();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): whoever used the engine has seen it
  }
  groups_ = {};  // calls that are still under way use the arenas
}

int64_t Engine::replica() const {
  return place_.dp * options_.stage.layout.context + place_.cp;
}

bool Engine::tells_losses() const {
  return plan_.parts.back().has_head && place_.tp == 0;
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
    stage_->rehearse(example);
    stream_.wait();
  }
  if (groups_.world != nullptr) share_plans();
  const int64_t outside = device_memory().used - used_before_ - arenas_.bytes();
  for (cost::MemoryRow& row : memory_.rows) {
    if (row.arena == cost::kOutsideArenas) row.bytes = used_before_ + outside;
  }
}

Tensor Engine::sum(double StepSums::*which) const {
  return Tensor(&(sums_->*which), DType::f64, {1}, stream_.device());
}

void Engine::begin_step(int64_t step, double weight) {
  StepSlot& slot = current_slot();
  slot.backwards.clear();
  slot.waits.clear();
  // A wait costs the host two marks, which on a GPU with thousands of waits in a step it would rather not pay for each.
  constexpr int64_t kTimedEvery = 10;
  slot.times_waits = groups_.world != nullptr && (!runs_ahead() || step % kTimedEvery == 0);
  slot.tells_spread = groups_.world != nullptr && (!runs_ahead() || step % kTimedEvery == kTimedEvery / 2);
  if (slot.times_waits) stream_.set_wait_times(&slot.waits);
  // A token counts the same wherever micro batches, ranks and masks fall.
  const Tensor total = sum(&StepSums::weight);
  ops::set_number(stream_, {.number = &sums_->weight, .value = place_.cp == 0 ? weight : 0.0});
  // Not before some kernel: right after the copies to the host that end a step, a GPU would take the mark for one of
  // them and leave it, and all that follows, behind those of a snapshot.
  slot.begun.record(stream_);
  if (groups_.replicas != nullptr) groups_.replicas->all_reduce(stream_, total).wait(stream_);
  ops::set_step_scalars(stream_, {.scalars = scalars_, .values = {.step = static_cast<uint64_t>(step)}});
  ops::weigh_step(stream_, {.scalars = scalars_, .total_weight = total.as<double>()});
  store_.zero_summed_gradients(stream_);
}

void Engine::act(size_t action, const std::vector<data::MicroBatch>& micro_batches) {
  const parallel::Action& what = plan_.training.schedule[action];
  if (!parallel::is_compute(what) || what.kind == parallel::ActionKind::forward) {
    stage_->train(action, micro_batches);
    return;
  }
  StreamTimes& backwards = current_slot().backwards;
  backwards.begin(stream_);
  stage_->train(action, micro_batches);
  backwards.end(stream_);
}

void Engine::end_step(double learning_rate, int64_t update, bool requests_stop) {
  const TraceRange range("update");
  stage_->finish();
  sync_->finish_reductions(stream_);
  copy_own_sums(requests_stop);
  optim::SumOverRanks over_ranks;
  if (groups_.world != nullptr) {
    over_ranks = [&](Stream& stream, const Tensor& squared_norm) {
      copy(stream, squared_norm, sum(&StepSums::squared_norm));
      groups_.world->all_reduce(stream, rank_sums()).wait(stream);
      copy(stream, sum(&StepSums::squared_norm), squared_norm);
    };
  }
  if (snapshot_) snapshot_->hold_back(stream_);
  optimizer_->update(stream_, learning_rate, update, over_ranks);
  StepSlot& slot = current_slot();
  if (slot.tells_spread) compare_ranks();
  const Tensor scalars = optimizer_->scalars();
  const Tensor sums(sums_, DType::f64, {kSums}, stream_.device());
  copy(stream_, scalars, on_host(slot.memory->data() + offsetof(StepTelling, update), scalars));
  copy(stream_, sums, on_host(slot.memory->data() + offsetof(StepTelling, sums), sums));
  slot.done.record(stream_);
  stream_.set_wait_times(nullptr);
  ++steps_ended_;
}

// What this rank adds to the sums over all ranks, but for the norm.
void Engine::copy_own_sums(bool requests_stop) {
  if (tells_losses()) {
    copy(stream_, stage_->loss_sum(), sum(&StepSums::loss));
  } else {
    ops::set_number(stream_, {.number = &sums_->loss, .value = 0.0});
  }
  ops::set_number(stream_, {.number = &sums_->stop_requests, .value = requests_stop ? 1.0 : 0.0});
}

void Engine::compare_ranks() {
  const RankTimes own = times_of_rank(own_seconds_, groups_.world->rank());
  ops::set_number(stream_, {.number = &sums_->times.slowest, .value = own.slowest});
  ops::set_number(stream_, {.number = &sums_->times.fastest, .value = own.fastest});
  const Tensor times(&sums_->times, DType::f64, {sizeof(RankTimes) / sizeof(double)}, stream_.device());
  groups_.world->all_reduce(stream_, times, comm::Reduction::max).wait(stream_);
}

// Those of StepSums that are added up over all ranks.
Tensor Engine::rank_sums() const {
  constexpr int64_t kCount = offsetof(StepSums, weight) / sizeof(double);
  return Tensor(sums_, DType::f64, {kCount}, stream_.device());
}

StepResult Engine::result_of_step(int steps_back) {
  MEGALITH_CHECK(static_cast<size_t>(steps_back) < kSlots && steps_ended_ > static_cast<size_t>(steps_back),
                 "{} steps back of {}", steps_back, steps_ended_);
  const StepSlot& slot = slots_[(steps_ended_ - 1 - static_cast<size_t>(steps_back)) % kSlots];
  slot.done.wait();
  StepTelling telling;
  std::memcpy(&telling, slot.memory->data(), sizeof(telling));
  StepResult result{.loss = telling.sums.weight > 0.0 ? telling.sums.loss / telling.sums.weight : 0.0,
                    .update = {.gradient_norm = telling.update.gradient_norm, .skipped = telling.update.skip != 0},
                    .stop_requested = telling.sums.stop_requests > 0.0};
  result.backward_seconds = slot.backwards.seconds();
  if (slot.times_waits) {
    result.wait_seconds = slot.waits.seconds();
    own_seconds_ = std::max(0.0, StreamMark::seconds_between(slot.begun, slot.done) - *result.wait_seconds);
  }
  if (slot.tells_spread) result.spread = spread_of(telling.sums.times);
  if (telling.update.first_non_finite >= 0) {
    result.update.first_non_finite = store_.all()[static_cast<size_t>(telling.update.first_non_finite)].spec->name;
  }
  return result;
}

EvaluationSum Engine::evaluate(const std::vector<data::MicroBatch>& micro_batches, double weight) {
  MEGALITH_CHECK(std::ssize(micro_batches) == options_.stage.micro_batches, "{} micro batches, {} are planned",
                 micro_batches.size(), options_.stage.micro_batches);
  for (size_t i = 0; i < plan_.evaluation.schedule.size(); ++i) stage_->evaluate(i, micro_batches);
  stage_->finish();
  copy_own_sums(false);
  // The place of the norm, of which there is none here, takes the weight.
  const bool tells_weight = tells_losses() && place_.cp == 0;
  ops::set_number(stream_, {.number = &sums_->squared_norm, .value = tells_weight ? weight : 0.0});
  if (groups_.world != nullptr) groups_.world->all_reduce(stream_, rank_sums()).wait(stream_);
  StepSums sums;
  copy(stream_, rank_sums(), on_host(&sums, rank_sums()));
  stream_.wait();
  return {.loss = sums.loss, .weight = sums.squared_norm};
}

std::string Engine::tell_all(const std::string& of_first) {
  return groups_.world == nullptr ? of_first : tell(*groups_.world, stream_, arenas_.scratch.whole(), of_first, 0);
}

// One rank of each stage has its way, and stages settle what they have in common.
void Engine::share_plans() {
  const Tensor room = arenas_.scratch.whole();
  std::string own = ops::plans_text(stream_);
  if (groups_.replicas != nullptr) own = tell(*groups_.replicas, stream_, room, own, 0);
  if (groups_.tensor != nullptr) own = tell(*groups_.tensor, stream_, room, own, 0);
  ops::take_plans(stream_, own);
  if (groups_.pipeline == nullptr) return;
  for (int stage = 0; stage < groups_.pipeline->size(); ++stage) {
    ops::take_plans(stream_, tell(*groups_.pipeline, stream_, room, own, stage));
  }
}

bool Engine::is_so_somewhere(bool here) {
  if (groups_.world == nullptr) return here;
  const Tensor answer = sum(&StepSums::stop_requests);
  ops::set_number(stream_, {.number = &sums_->stop_requests, .value = here ? 1.0 : 0.0});
  groups_.world->all_reduce(stream_, answer).wait(stream_);
  double count = 0.0;
  copy(stream_, answer, on_host(&count, answer));
  stream_.wait();
  return count > 0.0;
}

std::vector<bool> Engine::union_over_ranks(const std::vector<bool>& here) {
  if (groups_.world == nullptr) return here;
  const Tensor room = arenas_.scratch.whole();
  const int64_t at_once = room.elements();
  std::vector<bool> somewhere(here.size());
  for (int64_t begin = 0; begin < std::ssize(here); begin += at_once) {
    const int64_t count = std::min(at_once, std::ssize(here) - begin);
    std::vector<float> votes(here.begin() + begin, here.begin() + begin + count);
    const Tensor on_host(votes.data(), DType::f32, {count});
    const Tensor on_device(room.data, DType::f32, {count}, stream_.device());
    copy(stream_, on_host, on_device);
    groups_.world->all_reduce(stream_, on_device).wait(stream_);
    copy(stream_, on_device, on_host);
    stream_.wait();
    std::transform(votes.begin(), votes.end(), somewhere.begin() + begin, [](float vote) { return vote > 0.0F; });
  }
  return somewhere;
}

Tensor Engine::scratch_memory() const {
  return arenas_.activations.whole();
}

}  // namespace megalith::train
