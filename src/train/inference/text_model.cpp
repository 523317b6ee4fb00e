#include "train/inference/text_model.h"

#include <algorithm>

#include "model/parameters.h"
#include "ops/elementwise.h"
#include "plan/run_request.h"
#include "train/state/restore.h"

namespace megalith::train {

namespace {

engine::StageRequest request_of(const config::Run& run) {
  engine::StageRequest request = plan::stage_request(run, data::vocabulary_of(run.model.tokenizer).size);
  request.batch = 1;
  request.training = false;
  return request;
}

}  // namespace

TextModel::TextModel(checkpoint::Loaded& checkpoint, const config::Run& run, int64_t sequences)
    : tokenizer_(data::make_tokenizer(run.model.tokenizer)),
      sequences_(sequences),
      request_(request_of(run)),
      config_(request_.config),
      pool_(request_.threads),
      stream_(pool_, request_.device),
      weights_("weights", request_.device, plan::memory_of_stage(request_, 0).bytes_of("weights")),
      cache_("cache", request_.device, cache_bytes()),
      scratch_("scratch", request_.device, scratch_bytes()),
      table_(model::logical_parameters(config_)),
      placement_(table_),
      store_({.placement = placement_, .compute = config_.compute}, weights_, nullptr),
      generator_(config_, store_, stream_, cache_, {.sequences = sequences, .length = request_.length}) {
  MEGALITH_CHECK(sequences >= 1 && sequences <= request_.length, "{} sequences of {} tokens", sequences,
                 request_.length);
  restore(stream_, checkpoint, {.table = table_, .store = store_});
  ids_ = cache_.allocate("ids", DType::i32, {request_.length});
  positions_ = cache_.allocate("positions", DType::i32, {request_.length});
  targets_ = cache_.allocate("targets", DType::i32, {request_.length});
  target_weights_ = cache_.allocate("target weights", DType::f32, {request_.length});
  losses_ = cache_.allocate("losses", DType::f32, {request_.length});
  logits_ = scratch_.allocate("logits", config_.compute, {sequences, config_.padded_vocabulary});
  logits32_ = scratch_.allocate("logits32", DType::f32, {sequences, config_.padded_vocabulary});
  ops::fill(stream_, {.x = target_weights_, .value = 1.0});
}

std::vector<float> TextModel::read(int64_t sequence, int64_t position, std::span<const int32_t> tokens) {
  const auto count = std::ssize(tokens);
  generator_.feed(context(1, count, position), sequence, upload(ids_, tokens), logits_.slice_rows(0, 1));
  return std::move(download(1).front());
}

std::vector<std::vector<float>> TextModel::read_each(std::span<const Next> next) {
  std::vector<int64_t> sequences;
  std::vector<int32_t> positions, tokens;
  for (const Next& one : next) {
    sequences.push_back(one.sequence);
    positions.push_back(static_cast<int32_t>(one.position));
    tokens.push_back(one.token);
  }
  const auto count = std::ssize(next);
  model::Context with = context(count, 1, 0);
  with.positions = upload(positions_, positions);
  generator_.feed_each(with, sequences, positions, upload(ids_, tokens), logits_.slice_rows(0, count));
  return download(count);
}

std::vector<double> TextModel::losses(std::span<const int32_t> tokens) {
  const int64_t count = std::ssize(tokens) - 1;
  const Tensor losses(losses_.data, DType::f32, {count}, request_.device);
  generator_.judge(context(1, count, 0), upload(ids_, tokens.first(tokens.size() - 1)),
                   {.ids = upload(targets_, tokens.subspan(1)),
                    .weights = Tensor(target_weights_.data, DType::f32, {count}, request_.device),
                    .losses = losses});
  std::vector<float> found(static_cast<size_t>(count));
  copy(stream_, losses, Tensor(found.data(), DType::f32, {count}));
  stream_.wait();
  return {found.begin(), found.end()};
}

model::Context TextModel::context(int64_t batch, int64_t length, int64_t position) {
  return {.stream = stream_, .scratch = scratch_, .batch = batch, .length = length, .position_offset = position};
}

// The memory of `values` is free when this returns.
Tensor TextModel::upload(const Tensor& room, std::span<const int32_t> values) {
  const Shape shape{std::ssize(values)};
  const Tensor there(room.data, DType::i32, shape, request_.device);
  copy(stream_, Tensor(const_cast<int32_t*>(values.data()), DType::i32, shape), there);
  stream_.wait();
  return there;
}

std::vector<std::vector<float>> TextModel::download(int64_t rows) {
  const Tensor wide = logits32_.slice_rows(0, rows);
  ops::cast(stream_, {.x = logits_.slice_rows(0, rows), .y = wide});
  std::vector<float> all(static_cast<size_t>(wide.elements()));
  copy(stream_, wide, Tensor(all.data(), DType::f32, wide.shape));
  stream_.wait();
  std::vector<std::vector<float>> logits;
  for (auto row = all.begin(); row != all.end(); row += config_.padded_vocabulary) {
    logits.emplace_back(row, row + config_.vocabulary);
  }
  return logits;
}

// One layer's activations at a time, of one sequence as long as the context, and the logits of one token a sequence.
int64_t TextModel::scratch_bytes() const {
  engine::StageRequest request = request_;
  request.config.layers = 1;
  request.config.recompute = model::Recompute::none;
  const plan::MemoryTable table = plan::memory_of_stage(request, 0);
  return table.bytes_of("activations") + table.bytes_of("scratch") +
         2 * Arena::footprint(DType::f64, sequences_ * config_.padded_vocabulary);
}

int64_t TextModel::cache_bytes() const {
  const int64_t length = request_.length;
  const int64_t rope = config_.learned_positions ? 0 : config_.max_positions * (config_.head_dim / 2);
  return 2 * config_.layers * Arena::footprint(config_.compute, sequences_ * length * config_.kv_width()) +
         2 * Arena::footprint(DType::f32, rope) + 5 * Arena::footprint(DType::f32, length);
}

}  // namespace megalith::train
