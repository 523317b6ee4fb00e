#include "train/stage.h"

#include "ops/elementwise.h"
#include "ops/sum.h"
#include "train/context_share.h"

namespace megalith::train {

using parallel::Action;
using parallel::ActionKind;

Stage::Stage(const StageParts& parts)
    : parts_(parts),
      rope_(make_rope_table(parts.plan.config, parts.stream, parts.activations)),
      batches_(parts.stream, parts.batch,
               {.main = main_dtype(parts.plan.config.compute),
                .batch = parts.plan.shape.batch,
                .length = parts.plan.shape.length,
                .count = parts.plan.batches(),
                .document_room = parts.document_room,
                .ordered_ids = parts.orders_rows ? parts.plan.config.padded_vocabulary : 0,
                .ordered_positions =
                    parts.orders_rows && parts.plan.config.learned_positions ? parts.plan.config.max_positions : 0}) {
  const model::StagePlan& plan = parts.plan;
  for (size_t i = 0; i < plan.parts.size(); ++i) {
    chunks_.push_back(std::make_unique<model::Chunk>(plan.config, parts.store, rope_, plan.parts[i],
                                                     model::ChunkMemory{
                                                         .activations = parts.activations,
                                                         .recompute_room = recompute_room_,
                                                         .shape = plan.shape,
                                                         .slots = plan.slots(i),
                                                         .deferred_bytes_per_layer = parts.deferred_bytes_per_layer,
                                                     }));
  }
  for (int64_t i = 0; i < plan.stream_buffers(); ++i) {
    buffers_.push_back(
        parts.activations.allocate("residual", plan.config.compute, {plan.shape.rows, plan.config.hidden}));
  }
  losses_ = parts.batch.allocate("losses", main_dtype(plan.config.compute), {plan.shape.tokens()});
  loss_sum_ = parts.batch.allocate("loss sum", DType::f64, {1});
  for (const parallel::Bucket& bucket : parts.store.placement().buckets())
    bucket_layers_.push_back(first_layer_of(bucket));
  is_reduced_.resize(bucket_layers_.size());
  hooks_.before_forward = [this](int64_t layer) { wait_for_layer(chunk_in_hooks_, layer); };
  hooks_.after_backward = [this](int64_t layer) { reduce_finished_buckets(chunk_in_hooks_, layer); };
  // Elsewhere a step is full of messages, which no recording may hold.
  const parallel::Layout& layout = parts.layout;
  may_record_ = layout.tensor * layout.context * layout.pipeline * layout.chunks == 1;
  records_ = may_record_;
}

void Stage::train(size_t action, const std::vector<data::MicroBatch>& micro_batches) {
  act({.program = parts_.plan.training, .index = action, .training = true}, micro_batches);
}

void Stage::evaluate(size_t action, const std::vector<data::MicroBatch>& micro_batches) {
  act({.program = parts_.plan.evaluation, .index = action, .training = false}, micro_batches);
}

void Stage::act(const Step& step, const std::vector<data::MicroBatch>& micro_batches) {
  const Action& action = step.action();
  const parallel::Operands& operands = step.operands();
  exchanges_.resize(step.program.schedule.size());
  for (const size_t exchange : operands.waits_for) exchanges_[exchange].wait(parts_.stream);
  if (operands.loads_batch) {
    batches_.upload(parts_.stream, operands.batch, share(micro_batches[static_cast<size_t>(action.micro_batch)]));
    if (step.training) batches_.start_order(parts_.stream, operands.batch);
  }
  switch (action.kind) {
    case ActionKind::forward:
      forward(step);
      break;
    case ActionKind::backward:
    case ActionKind::backward_input:
    case ActionKind::backward_weight:
      backward(step);
      break;
    case ActionKind::send_receive:
      exchange(step);
      break;
    case ActionKind::gather_weights:
      parts_.sync->start_gather(parts_.stream, action.chunk);
      break;
    case ActionKind::release_weights:
      parts_.sync->release_weights(action.chunk);
      break;
    case ActionKind::reduce_bucket:
      reduce(action.bucket);
      is_reduced_[action.bucket] = false;
      break;
  }
}

void Stage::forward(const Step& step) {
  model::Chunk& chunk = chunk_of(step);
  const bool is_first = step.action().micro_batch == 0;
  if (chunk.part().has_head && step.training) parts_.sync->prepare_gradients(parts_.stream, step.action().chunk);
  const bool watched = waits_for_weights(step);
  const auto body = [&] {
    model::Context how = context(step);
    if (watched) how.hooks = &hooks_;
    chunk_in_hooks_ = step.action().chunk;
    if (step.training) {
      chunk.forward(how, pass(step));
    } else {
      chunk.evaluate(how, pass(step));
    }
    if (chunk.part().has_head) ops::sum(parts_.stream, {.x = losses_, .total = loss_sum_, .adds = !is_first});
  };
  if (records_ && step.training && !watched) {
    recorded(step).forward.run(parts_.stream, body);
  } else {
    body();
  }
}

void Stage::backward(const Step& step) {
  model::Chunk& chunk = chunk_of(step);
  if (parts_.sync != nullptr) parts_.sync->wait_for_weights(parts_.stream, step.action().chunk);
  if (step.action().kind == ActionKind::backward_weight) {
    chunk.backward_weight(parts_.stream, step.operands().slot);
    return;
  }
  if (chunk.part().has_embedding) batches_.wait_for_order(parts_.stream, step.operands().batch);
  if (step.action().kind == ActionKind::backward_input) {
    chunk.backward_input(context(step), pass(step));
    return;
  }
  if (!chunk.part().has_head) parts_.sync->prepare_gradients(parts_.stream, step.action().chunk);
  if (is_last_backward(step)) {
    model::Context watched = context(step);
    watched.hooks = &hooks_;
    chunk_in_hooks_ = step.action().chunk;
    chunk.backward(watched, pass(step));
    return;
  }
  const auto body = [&] { chunk.backward(context(step), pass(step)); };
  if (records_) {
    recorded(step).backward.run(parts_.stream, body);
  } else {
    body();
  }
}

Stage::Recorded& Stage::recorded(const Step& step) {
  const size_t others = step.action().micro_batch == 0 ? 0 : 1;
  return recorded_[others + (batches_[step.operands().batch].document_bounds ? 2 : 0)];
}

void Stage::exchange(const Step& step) {
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

void Stage::reduce(size_t bucket) {
  if (is_reduced_[bucket]) return;
  is_reduced_[bucket] = true;
  parts_.sync->start_reduce(parts_.stream, bucket);
}

bool Stage::waits_for_weights(const Step& step) const {
  if (parts_.store.placement().shards() == 1) return false;
  return step.action().micro_batch == 0 || parts_.store.placement().shards_weights();
}

void Stage::wait_for_layer(int64_t chunk, int64_t layer) {
  const std::vector<parallel::Bucket>& buckets = parts_.store.placement().buckets();
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (buckets[i].chunk == chunk && bucket_layers_[i] <= layer) parts_.sync->wait_for_bucket(parts_.stream, i);
  }
}

bool Stage::is_last_backward(const Step& step) const {
  const parallel::Schedule& schedule = step.program.schedule;
  // A rank alone has nobody to reduce with: its backward may as well be recorded.
  if (parts_.layout.world() == 1 || step.index + 1 == schedule.size()) return false;
  const Action& next = schedule[step.index + 1];
  return next.kind == ActionKind::reduce_bucket && next.chunk == step.action().chunk;
}

void Stage::reduce_finished_buckets(int64_t chunk, int64_t layer) {
  const std::vector<parallel::Bucket>& buckets = parts_.store.placement().buckets();
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (buckets[i].chunk == chunk && bucket_layers_[i] >= layer) reduce(i);
  }
}

int64_t Stage::first_layer_of(const parallel::Bucket& bucket) const {
  const int64_t behind_all = parts_.plan.config.layers;
  int64_t first = behind_all;
  for (const parallel::Slab& slab : bucket.slabs) {
    for (const parallel::Slab::Entry& entry : slab.entries) {
      const parallel::PlacedParameter& parameter = parts_.store.placement().parameters()[entry.parameter];
      // The second copy of a tied embedding serves the head alone.
      const bool is_heads_copy = parameter.is_shared && !parameter.is_owner;
      const std::optional<int64_t> layer = parallel::layer_of(*parameter.spec);
      const bool is_embedding = parameter.spec->name.starts_with("embedding.") && !is_heads_copy;
      first = std::min(first, layer ? *layer : is_embedding ? int64_t{-1} : behind_all);
    }
  }
  return first;
}

model::Context Stage::context(const Step& step) const {
  const DeviceBatch& batch = batches_[step.operands().batch];
  return {.stream = parts_.stream,
          .scratch = parts_.scratch,
          .batch = parts_.plan.shape.batch,
          .length = parts_.plan.shape.length,
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
          .deterministic = parts_.deterministic,
          .tensor = {.group = parts_.groups.tensor.get(), .sequence_parallel = parts_.layout.sequence_parallel},
          .samples = {.group = parts_.groups.context.get(), .split = parts_.split}};
}

model::Pass Stage::pass(const Step& step) const {
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

data::MicroBatch Stage::share(const data::MicroBatch& micro_batch) const {
  return parts_.groups.context == nullptr ? micro_batch : share_of(micro_batch, parts_.split);
}

void Stage::rehearse(const data::MicroBatch& example) {
  const bool training = !parts_.plan.training.schedule.empty();
  batches_.upload(parts_.stream, 0, share(example));
  if (training) batches_.start_order(parts_.stream, 0);
  batches_.wait_for_order(parts_.stream, 0);
  for (size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    for (const int64_t micro_batch : {0, 1}) {
      parallel::StepProgram program{
          .schedule = {{.chunk = static_cast<int64_t>(chunk), .micro_batch = micro_batch}},
          .operands = {{.slot = 0, .batch = 0, .input = 0, .output = 1, .gradient = training ? 2 : -1}}};
      const Step step{.program = program, .index = 0, .training = training};
      if (!training) {
        chunks_[chunk]->evaluate(context(step), pass(step));
        continue;
      }
      chunks_[chunk]->forward(context(step), pass(step));
      if (parts_.deferred_bytes_per_layer > 0) {
        chunks_[chunk]->backward_input(context(step), pass(step));
        chunks_[chunk]->backward_weight(parts_.stream, 0);
      } else {
        chunks_[chunk]->backward(context(step), pass(step));
      }
    }
  }
}

}  // namespace megalith::train
