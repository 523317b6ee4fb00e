#include "engine/engine.h"

#include <algorithm>
#include <cstring>

#include "core/device.h"
#include "core/process/failpoint.h"
#include "core/trace.h"
#include "model/parameters.h"
#include "ops/endless.h"
#include "ops/tuning.h"

namespace megalith::engine {

namespace {

Tensor on_host(void* data, const Tensor& like) {
  return Tensor(data, like.dtype, like.shape);
}

std::vector<int64_t> layers_of(const StageProgram& program) {
  std::vector<int64_t> layers;
  for (const model::ChunkPart& part : program.parts) {
    for (int64_t layer = part.layers.begin; layer < part.layers.end; ++layer) layers.push_back(layer);
  }
  return layers;
}

bool is_backward(const parallel::Action& action) {
  return parallel::is_compute(action) && action.kind != parallel::ActionKind::forward;
}

}  // namespace

Engine::Engine(const EngineOptions& options, comm::World& world, const ArenaSizes& sizes)
    : Engine(options, world, StagePrograms(options.stage), &sizes) {}

Engine::Engine(const EngineOptions& options, comm::World& world, const StagePrograms& programs)
    : Engine(options, world, programs, nullptr) {}

Engine::Engine(const EngineOptions& options, comm::World& world, const StagePrograms& programs, const ArenaSizes* sizes)
    : options_(options),
      page_(world.status_page()),
      place_(parallel::Mesh(options.stage.layout).coordinates_of(world.rank())),
      groups_(parallel::make_groups(world, {.layout = options.stage.layout,
                                            .kv_heads = options.stage.config.kv_heads,
                                            .tied_embeddings = options.stage.config.tied_embeddings,
                                            .deadline = options.deadline})),
      pool_(sizes == nullptr ? nullptr : std::make_unique<ThreadPool>(options.stage.threads)),
      stream_(pool_ ? Stream(*pool_, options.stage.device)
                    : Stream(options.stage.device, Shadow{.threads = options.stage.threads})),
      table_(model::logical_parameters(options.stage.config)),
      placement_(place_parameters(options.stage, table_, place_.pp, place_.tp)),
      program_(programs.of_stage(place_.pp, placement_.chunks_of_buckets())),
      arenas_(sizes == nullptr ? Arenas(options.stage.device, Shadow{}) : Arenas(options.stage.device, *sizes)),
      store_({.placement = placement_, .compute = options.stage.config.compute, .replica = replica()}, arenas_.weights,
             options.stage.training ? &arenas_.gradients : nullptr),
      precision_(program_.config, store_, layers_of(program_), arenas_.fp8, arenas_.fp8),
      scales_(precision_, program_.config.precision, groups_, arenas_.fp8) {
  const Tensor scalars =
      arenas_.batch.allocate("step scalars", DType::f64, {static_cast<int64_t>(sizeof(ops::StepScalars) / 8) + kSums});
  scalars_ = static_cast<ops::StepScalars*>(scalars.data);
  sums_ = reinterpret_cast<StepSums*>(scalars_ + 1);
  talk_ = std::make_unique<RankTalk>(*groups_.world, stream_,
                                     arenas_.batch.allocate("talk", DType::i32, {RankTalk::kRoom}));
  if (options.stage.training) {
    sync_ = std::make_unique<parallel::ReplicaSync>(
        store_, groups_, parallel::ReplicaSyncOptions{.reduces_in_bf16 = options.stage.reduces_in_bf16},
        arenas_.reduction);
    optimizer_ = std::make_unique<optim::Optimizer>(
        options.optimizer, store_, stream_,
        optim::OptimizerArenas{.masters = arenas_.masters, .moments = arenas_.moments, .table = arenas_.optimizer});
  }
  stage_ = std::make_unique<Stage>(
      StageParts{.program = program_,
                 .layout = options_.stage.layout,
                 .store = store_,
                 .precision = precision_,
                 .groups = groups_,
                 .sync = sync_.get(),
                 .stream = stream_,
                 .activations = arenas_.activations,
                 .scratch = arenas_.scratch,
                 .batch = arenas_.batch,
                 .deferred_bytes = sizes == nullptr ? std::vector<int64_t>() : sizes->deferred,
                 .split = {.length = options.stage.length, .ranks = options.stage.layout.context, .rank = place_.cp},
                 .scalars = scalars_,
                 .seed = options.seed,
                 .deterministic = options.deterministic});
  stage_->set_recording(options.records_graphs);
  if (stream_.is_shadow()) return;
  for (StepSlot& slot : slots_) {
    slot.memory = std::make_unique<StagingMemory>(
        options.stage.device, static_cast<int64_t>(sizeof(StepTelling)) + scales_.findings().bytes(), "step results");
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
  return program_.parts.back().has_head && place_.tp == 0;
}

void Engine::initialise(uint64_t seed) {
  store_.initialise(stream_, seed);
  forget_scales();
  if (optimizer_) optimizer_->initialise(stream_);
}

void Engine::rehearse(const data::MicroBatch& example) {
  // Gradients so large that fp8, whose scales may not be known yet, makes no zeros of them: products of zeros are fast.
  ops::set_step_scalars(stream_, {.scalars = scalars_, .values = {.step = 0, .gradient_scale = 1.0}});
  stage_->rehearse(example);
}

void Engine::tune(const data::MicroBatch& example) {
  if (stream_.device() == Device::cpu) return;
  {
    const ops::TuneByTiming tuning(stream_);
    rehearse(example);
    precision_.forget_amax(stream_);
    stream_.wait();
  }
  share_tuning();
  int64_t in_arenas = stage_->deferred_bytes();
  for (const Arena* arena : arenas_.all()) in_arenas += arena->capacity();
  bytes_outside_ = device_memory().used - in_arenas;
}

ArenaSizes Engine::sizes() const {
  return {.weights = arenas_.weights.peak(),
          .gradients = arenas_.gradients.peak(),
          .masters = arenas_.masters.peak(),
          .moments = arenas_.moments.peak(),
          .optimizer = arenas_.optimizer.peak(),
          .activations = arenas_.activations.peak(),
          .reduction = arenas_.reduction.peak(),
          .scratch = arenas_.scratch.peak(),
          .batch = arenas_.batch.peak(),
          .fp8 = arenas_.fp8.peak(),
          .deferred = stage_->deferred_peaks()};
}

Tensor Engine::sum(double StepSums::*which) const {
  return Tensor(&(sums_->*which), DType::f64, {1}, stream_.device());
}

void Engine::set_sum(double StepSums::*which, double value) {
  ops::set_number(stream_, {.number = &(sums_->*which), .value = value});
}

void Engine::run_step(const StepOrder& order, const MicroBatches& micro_batches) {
  const parallel::StepProgram& program = program_.of_step(micro_batches.size());
  StreamTimes& backwards = current_slot().backwards;
  // Where scales are not known yet, passes that only measure them come before those of the step.
  for (int measurements = needed_measurements();; measurements = measure_scales(measurements)) {
    begin_step(order);
    if (pass_failpoint("engine.kernel")) ops::compute_for_ever(stream_);
    for (size_t i = 0; i < program.schedule.size(); ++i) {
      const parallel::Action& action = program.schedule[i];
      const ProgramStep step{.program = program, .index = i, .training = true};
      page_.begin_micro_batch(action.micro_batch);
      pass_failpoint("engine.action");
      if (is_backward(action)) backwards.begin(stream_);
      stage_->prepare(step, micro_batches);
      if (action_times_ != nullptr) action_times_->begin(stream_, i);
      if (!is_compute(action)) {
        stage_->communicate(step);
      } else {
        Recording recording(stage_->recorded(step), stream_);
        if (recording.is_needed()) stage_->compute(step);
        recording.finish();
      }
      if (action_times_ != nullptr) action_times_->end(stream_, i);
      if (is_backward(action)) backwards.end(stream_);
    }
    stage_->finish();
    sync_->finish_reductions(stream_);
    if (measurements == 0) break;
  }
  end_step(order);
}

int Engine::needed_measurements() {
  const bool is_delayed = options_.stage.config.precision.scaling == model::Scaling::delayed;
  if (!is_delayed || scales_are_settled_ || stream_.is_shadow()) return 0;
  scales_are_settled_ = !talk_->any_rank(scales_.exist() && !scales_are_known_);
  return scales_are_settled_ ? 0 : kMeasurements;
}

// The first finds the scales of weights, activations and the last gradients, which the inner gradients of the second
// then depend on.
int Engine::measure_scales(int left) {
  inspect_scales();
  scales_.update(stream_, nullptr, left == kMeasurements ? ops::Remember::as_newest : ops::Remember::in_place);
  if (talk_->any_rank(scales_.found_non_finite(stream_))) {
    precision_.reset(stream_);
    return 0;
  }
  scales_are_settled_ = left == 1;
  return left - 1;
}

void Engine::inspect_scales() {
  set_sum(&StepSums::saturations, 0.0);
  scales_.reduce(stream_);
  scales_.inspect(stream_, optimizer_->squared_norm().as<double>(), &sums_->saturations);
  if (!keeps_scales()) set_sum(&StepSums::saturations, 0.0);  // one rank of a stage counts
}

void Engine::forget_scales() {
  precision_.reset(stream_);
  scales_are_known_ = false;
  scales_are_settled_ = false;
}

void Engine::take_scales_from_history() {
  scales_.update(stream_, nullptr, ops::Remember::not_at_all);
  scales_are_known_ = true;
}

void Engine::begin_step(const StepOrder& order) {
  StepSlot& slot = current_slot();
  slot.backwards.clear();
  slot.waits.clear();
  // A wait costs the host two marks, which on a GPU with thousands of waits in a step it would rather not pay for each.
  constexpr int64_t kTimedEvery = 10;
  slot.times_waits = !is_alone() && (!runs_ahead() || order.step % kTimedEvery == 0);
  slot.tells_spread = !is_alone() && (!runs_ahead() || order.step % kTimedEvery == kTimedEvery / 2);
  if (slot.times_waits) stream_.set_wait_times(&slot.waits);
  // A token counts the same wherever micro batches, ranks and masks fall.
  const Tensor total = sum(&StepSums::weight);
  set_sum(&StepSums::weight, order.weight / static_cast<double>(options_.stage.layout.context));
  // Not before some kernel: right after the copies to the host that end a step, a GPU would take the mark for one of
  // them and leave it, and all that follows, behind those of a snapshot.
  slot.begun.record(stream_);
  groups_.replicas->all_reduce(stream_, total).wait(stream_);
  ops::set_step_scalars(stream_, {.scalars = scalars_, .values = {.step = static_cast<uint64_t>(order.step)}});
  ops::weigh_step(stream_, {.scalars = scalars_, .total_weight = total.as<double>()});
  store_.zero_summed_gradients(stream_);
}

void Engine::end_step(const StepOrder& order) {
  const TraceRange range("update");
  page_.beat();
  optimizer_->measure(stream_, order.learning_rate, order.step + 1);
  inspect_scales();
  copy(stream_, optimizer_->squared_norm(), sum(&StepSums::squared_norm));
  sum_over_ranks(order.requests, 0.0);
  copy(stream_, sum(&StepSums::squared_norm), optimizer_->squared_norm());
  if (update_barrier_ != nullptr) update_barrier_->hold(stream_);
  optimizer_->apply(stream_);
  scales_.update(stream_, static_cast<const ops::UpdateScalars*>(optimizer_->scalars().data), ops::Remember::as_newest);
  StepSlot& slot = current_slot();
  if (slot.tells_spread) compare_ranks();
  stream_.set_wait_times(nullptr);
  ++steps_ended_;
  if (stream_.is_shadow()) return;
  const Tensor scalars = optimizer_->scalars();
  const Tensor sums(sums_, DType::f64, {kSums}, stream_.device());
  copy(stream_, scalars, on_host(slot.memory->data() + offsetof(StepTelling, update), scalars));
  copy(stream_, sums, on_host(slot.memory->data() + offsetof(StepTelling, sums), sums));
  if (scales_.exist())
    copy(stream_, scales_.findings(), on_host(slot.memory->data() + sizeof(StepTelling), scales_.findings()));
  slot.done.record(stream_);
}

void Engine::sum_over_ranks(const StepRequests& requests, double evaluated_weight) {
  if (tells_losses()) {
    copy(stream_, stage_->loss_sum(), sum(&StepSums::loss));
  } else {
    set_sum(&StepSums::loss, 0.0);
  }
  set_sum(&StepSums::evaluated_weight, evaluated_weight);
  set_sum(&StepSums::stop_requests, requests.stop ? 1.0 : 0.0);
  set_sum(&StepSums::save_requests, requests.save ? 1.0 : 0.0);
  constexpr int64_t kSummed = offsetof(StepSums, weight) / sizeof(double);
  groups_.world->all_reduce(stream_, Tensor(sums_, DType::f64, {kSummed}, stream_.device())).wait(stream_);
}

void Engine::compare_ranks() {
  const RankTimes own = times_of_rank(own_seconds_, groups_.world->rank());
  ops::set_number(stream_, {.number = &sums_->times.slowest, .value = own.slowest});
  ops::set_number(stream_, {.number = &sums_->times.fastest, .value = own.fastest});
  const Tensor times(&sums_->times, DType::f64, {sizeof(RankTimes) / sizeof(double)}, stream_.device());
  groups_.world->all_reduce(stream_, times, comm::Reduction::max).wait(stream_);
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
                    .stop_requested = telling.sums.stop_requests > 0.0,
                    .save_requested = telling.sums.save_requests > 0.0,
                    .saturations = static_cast<int64_t>(telling.sums.saturations)};
  result.backward_seconds = slot.backwards.seconds();
  if (slot.times_waits) {
    result.wait_seconds = slot.waits.seconds();
    own_seconds_ = std::max(0.0, StreamMark::seconds_between(slot.begun, slot.done) - *result.wait_seconds);
  }
  page_.set_working_seconds(own_seconds_);
  if (slot.tells_spread) result.spread = spread_of(telling.sums.times);
  const auto* findings = reinterpret_cast<const int32_t*>(slot.memory->data() + sizeof(StepTelling));
  result.saturated = scales_.saturated(findings);
  result.update.first_non_finite = scales_.first_non_finite(findings);
  if (result.update.first_non_finite.empty() && telling.update.first_non_finite >= 0) {
    const auto parameter = static_cast<size_t>(telling.update.first_non_finite);
    result.update.parameter = store_.all()[parameter].spec->name;
    result.update.first_non_finite = "the gradient of " + result.update.parameter;
  }
  return result;
}

EvaluationSum Engine::evaluate(const MicroBatches& micro_batches, double weight) {
  MEGALITH_CHECK(std::ssize(micro_batches) == options_.stage.micro_batches, "{} micro batches, the program has {}",
                 micro_batches.size(), options_.stage.micro_batches);
  for (size_t i = 0; i < program_.evaluation.schedule.size(); ++i) {
    page_.begin_micro_batch(program_.evaluation.schedule[i].micro_batch);
    const ProgramStep step{.program = program_.evaluation, .index = i, .training = false};
    stage_->prepare(step, micro_batches);
    if (is_compute(step.action())) {
      stage_->compute(step);
    } else {
      stage_->communicate(step);
    }
  }
  stage_->finish();
  set_sum(&StepSums::squared_norm, 0.0);
  set_sum(&StepSums::saturations, 0.0);
  sum_over_ranks({}, tells_losses() && place_.cp == 0 ? weight : 0.0);
  if (stream_.is_shadow()) return {};
  StepSums sums;
  const Tensor all(sums_, DType::f64, {kSums}, stream_.device());
  copy(stream_, all, on_host(&sums, all));
  stream_.wait();
  return {.loss = sums.loss, .weight = sums.evaluated_weight};
}

// One rank of each stage has its way, and stages settle what they have in common.
void Engine::share_tuning() {
  std::string own = talk_->broadcast(*groups_.replicas, ops::tuning_text(stream_), 0);
  own = talk_->broadcast(*groups_.tensor, own, 0);
  ops::take_tuning(stream_, own);
  if (groups_.pipeline->is_alone()) return;
  for (int stage = 0; stage < groups_.pipeline->size(); ++stage) {
    ops::take_tuning(stream_, talk_->broadcast(*groups_.pipeline, own, stage));
  }
}

}  // namespace megalith::engine
