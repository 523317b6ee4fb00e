#include "engine/stage.h"

#include "engine/context_share.h"
#include "ops/elementwise.h"

namespace megalith::engine {

using parallel::Action;
using parallel::ActionKind;

Stage::Stage(const StageParts& parts)
    : parts_(parts),
      rope_(make_rope_table(parts.program.config, parts.stream, parts.activations)),
      batches_(parts.stream, parts.batch,
               {.main = main_dtype(parts.program.config.compute),
                .batch = parts.program.shape.batch,
                .length = parts.program.shape.length,
                .count = parts.program.batches(),
                .document_room = parts.program.document_room,
                .ordered_ids = parts.program.orders_rows ? parts.program.config.padded_vocabulary : 0,
                .ordered_positions = parts.program.orders_rows && parts.program.config.learned_positions
                                         ? parts.program.config.max_positions
                                         : 0}) {
  const StageProgram& program = parts.program;
  for (size_t i = 0; i < program.parts.size(); ++i) {
    chunks_.push_back(std::make_unique<model::Chunk>(
        program.config, parts.store, rope_, program.parts[i],
        model::ChunkMemory{.precision = parts.precision,
                           .activations = parts.activations,
                           .recompute_room = recompute_room_,
                           .shape = program.shape,
                           .slots = program.slots(i),
                           .defers_products = program.defers_products,
                           .deferred_bytes_per_slot = parts.deferred_bytes.empty() ? 0 : parts.deferred_bytes[i]}));
  }
  for (int64_t i = 0; i < program.stream_buffers(); ++i) {
    buffers_.push_back(
        parts.activations.allocate("residual", program.config.compute, {program.shape.rows, program.config.hidden}));
  }
  losses_ = parts.batch.allocate("losses", main_dtype(program.config.compute), {program.shape.tokens()});
  loss_sum_ = parts.batch.allocate("loss sum", DType::f64, {1});
  // The CPU records nothing. With other layouts a step is full of messages, which no recording may hold.
  const parallel::Layout& layout = parts.layout;
  may_record_ =
      parts.stream.device() == Device::cuda && layout.tensor * layout.context * layout.pipeline * layout.chunks == 1;
  records_ = may_record_;
}

void Stage::prepare(const ProgramStep& step, const MicroBatches& micro_batches) {
  const Action& action = step.action();
  const parallel::Operands& operands = step.operands();
  exchanges_.resize(step.program.schedule.size());
  for (const size_t exchange : operands.waits_for) exchanges_[exchange].wait(parts_.stream);
  if (operands.loads_batch) {
    upload(operands.batch, micro_batches[action.micro_batch]);
    if (step.training) batches_.start_order(parts_.stream, operands.batch);
  }
  if (is_compute(action)) prepare_pass(step);
}

void Stage::prepare_pass(const ProgramStep& step) {
  const Action& action = step.action();
  const model::ChunkPart& part = chunk_of(step).part();
  const bool is_forward = action.kind == ActionKind::forward;
  if (!is_forward && parts_.sync != nullptr) parts_.sync->wait_for_weights(parts_.stream, action.chunk);
  if (!is_forward && part.has_embedding && action.kind != ActionKind::backward_weight)
    batches_.wait_for_order(parts_.stream, step.operands().batch);
  // The head makes the first gradients, in forward.
  const bool begins_gradients = part.has_head ? is_forward && step.training : action.kind == ActionKind::backward;
  if (begins_gradients) parts_.sync->prepare_gradients(parts_.stream, action.chunk);
}

void Stage::communicate(const ProgramStep& step) {
  const Action& action = step.action();
  if (action.kind == ActionKind::send_receive) exchange(step);
  if (action.kind == ActionKind::gather_weights) parts_.sync->start_gather(parts_.stream, action.chunk);
  if (action.kind == ActionKind::release_weights) parts_.sync->release_weights(action.chunk);
  if (action.kind == ActionKind::reduce_bucket) parts_.sync->reduce_rest(parts_.stream, action.bucket);
}

void Stage::compute(const ProgramStep& step) {
  model::Chunk& chunk = chunk_of(step);
  const Action& action = step.action();
  if (action.kind == ActionKind::backward_weight) {
    chunk.backward_weight(parts_.stream, step.operands().slot);
  } else if (action.kind != ActionKind::forward) {
    chunk.backward(context(step), pass(step));
  } else {
    if (step.training) {
      chunk.forward(context(step), pass(step));
    } else {
      chunk.evaluate(context(step), pass(step));
    }
    if (chunk.part().has_head)
      ops::sum(parts_.stream, {.x = losses_, .total = loss_sum_, .adds = action.micro_batch > 0});
  }
}

RecordedWork* Stage::recorded(const ProgramStep& step) {
  if (!records_ || traffic(step).sync != nullptr) return nullptr;
  const size_t backward = step.action().kind == ActionKind::forward ? 0 : 1;
  const size_t later = step.action().micro_batch == 0 ? 0 : 1;
  const size_t bounded = batches_[step.operands().batch].document_bounds ? 1 : 0;
  return &recorded_[backward * 4 + bounded * 2 + later];
}

void Stage::exchange(const ProgramStep& step) {
  const auto messages = [&](const std::vector<parallel::Transfer>& transfers, const std::vector<int64_t>& buffers) {
    std::vector<comm::Message> list;
    for (size_t i = 0; i < transfers.size(); ++i) {
      list.push_back({.peer = static_cast<int>(transfers[i].peer), .tensor = stream_buffer(buffers[i])});
    }
    return list;
  };
  exchanges_[step.index] =
      parts_.groups.pipeline->exchange(parts_.stream, messages(step.action().sends, step.operands().sends),
                                       messages(step.action().receives, step.operands().receives));
}

void Stage::finish() {
  for (const comm::Pending& exchange : exchanges_) exchange.wait(parts_.stream);
  exchanges_.clear();
}

parallel::LayerTraffic Stage::traffic(const ProgramStep& step) const {
  const Action& action = step.action();
  const bool has_some = action.kind == ActionKind::forward ? weights_arrive(step) : action.reduces_buckets;
  return has_some ? parallel::LayerTraffic{.sync = parts_.sync, .chunk = action.chunk} : parallel::LayerTraffic{};
}

bool Stage::weights_arrive(const ProgramStep& step) const {
  if (parts_.store.placement().shards() == 1) return false;
  return step.action().micro_batch == 0 || parts_.store.placement().shards_weights();
}

std::vector<int64_t> Stage::deferred_peaks() const {
  if (!parts_.program.defers_products) return {};
  std::vector<int64_t> peaks;
  for (const auto& chunk : chunks_) peaks.push_back(chunk->deferred_peak());
  return peaks;
}

int64_t Stage::deferred_bytes() const {
  int64_t bytes = 0;
  for (const auto& chunk : chunks_) bytes += chunk->deferred_capacity();
  return bytes;
}

model::Context Stage::context(const ProgramStep& step) const {
  const DeviceBatch& batch = batches_[step.operands().batch];
  const bool defers = step.action().kind == ActionKind::backward_input;
  return {.stream = parts_.stream,
          .scratch = parts_.scratch,
          .batch = parts_.program.shape.batch,
          .length = parts_.program.shape.length,
          .sample_ids = batch.sample_ids,
          .first_positions = batch.first_positions,
          .document_starts = batch.document_starts,
          .document_bounds = batch.document_bounds,
          .positions = batch.positions,
          .positions_order = batch.positions_order,
          .seed = parts_.seed,
          .step = &parts_.scalars->step,
          .training = step.training,
          .first_of_step = step.action().micro_batch == 0 || parts_.store.placement().shards_weights(),
          .casts_weights = step.action().micro_batch == 0 && step.action().kind == ActionKind::forward,
          .deterministic = parts_.deterministic,
          .tensor = {.group = parts_.groups.tensor.get(),
                     .sequence_parallel = parts_.layout.sequence_parallel,
                     .kv_heads = parts_.groups.kv_heads.get()},
          .samples = {.group = parts_.groups.context.get(), .split = parts_.split},
          .deferred = defers ? chunk_of(step).deferred(step.operands().slot) : nullptr,
          .traffic = traffic(step)};
}

model::Pass Stage::pass(const ProgramStep& step) const {
  const parallel::Operands& operands = step.operands();
  const DeviceBatch& batch = batches_[operands.batch];
  return {.slot = operands.slot,
          .input = stream_buffer(operands.input),
          .output = stream_buffer(operands.output),
          .gradient = stream_buffer(operands.gradient),
          .ids = batch.ids,
          .order = batch.order,
          .targets = {.ids = batch.targets,
                      .weights = batch.weights,
                      .losses = losses_,
                      .gradient_scale = &parts_.scalars->gradient_scale}};
}

void Stage::upload(int64_t number, const data::MicroBatch& micro_batch) {
  if (parts_.groups.context->is_alone()) return batches_.upload(parts_.stream, number, micro_batch);
  batches_.upload(parts_.stream, number, share_of(micro_batch, parts_.split));
}

void Stage::rehearse(const data::MicroBatch& example) {
  const bool training = !parts_.program.training.schedule.empty();
  upload(0, example);
  if (training) batches_.start_order(parts_.stream, 0);
  batches_.wait_for_order(parts_.stream, 0);
  for (size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    for (const int64_t micro_batch : {0, 1}) {
      parallel::StepProgram program{
          .schedule = {{.chunk = static_cast<int64_t>(chunk), .micro_batch = micro_batch}},
          .operands = {{.slot = 0, .batch = 0, .input = 0, .output = 1, .gradient = training ? 2 : -1}}};
      const auto alone = [&](const ProgramStep& step) {
        model::Context without_traffic = context(step);
        without_traffic.traffic = {};
        return without_traffic;
      };
      if (!training || parts_.stream.is_shadow()) {
        const ProgramStep evaluation{.program = program, .index = 0, .training = false};
        chunks_[chunk]->evaluate(alone(evaluation), pass(evaluation));
      }
      if (!training) continue;
      const ProgramStep step{.program = program, .index = 0, .training = true};
      chunks_[chunk]->forward(alone(step), pass(step));
      if (parts_.program.defers_products) {
        model::Context deferring = alone(step);
        deferring.deferred = chunks_[chunk]->deferred(0);
        chunks_[chunk]->backward(deferring, pass(step));
        chunks_[chunk]->backward_weight(parts_.stream, 0);
      } else {
        chunks_[chunk]->backward(alone(step), pass(step));
      }
    }
  }
}

}  // namespace megalith::engine
