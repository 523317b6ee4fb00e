#include "model/attention_core.h"

#include <cmath>

#include "ops/attention.h"
#include "ops/elementwise.h"

namespace megalith::model {

using parallel::ContextSplit;
using parallel::Half;

Heads AttentionCore::split(Tensor qkv) const {
  const int64_t q = config_.query_width();
  const int64_t kv = config_.kv_width();
  return {.q = qkv.slice_cols(0, q), .k = qkv.slice_cols(q, q + kv), .v = qkv.slice_cols(q + kv, q + 2 * kv)};
}

void AttentionCore::forward(const Context& context, Tensor qkv, Tensor mixed, Tensor log_sum_exp) const {
  const ArenaScope scope(context.scratch);
  const Heads heads = split(qkv);
  if (context.samples.group != nullptr) {
    const int64_t q = config_.query_width();
    forward_shared(context, heads, qkv.slice_cols(q, qkv.cols()), mixed, log_sum_exp);
    return;
  }
  const Heads seen = context.cache != nullptr ? through_cache(context, heads) : heads;
  ops::attention_forward(context.stream,
                         {.q = seen.q,
                          .k = seen.k,
                          .v = seen.v,
                          .out = mixed,
                          .log_sum_exp = log_sum_exp,
                          .batch = context.batch,
                          .heads = config_.heads,
                          .kv_heads = config_.kv_heads,
                          .query_offset = context.position_offset,
                          .scale = scale(),
                          .document_starts = context.document_starts,
                          .document_bounds = context.document_bounds,
                          .dropout = dropout(context),
                          .head_offset = head_offset(context),
                          .scratch = allocate_scratch(context, context.batch, seen.k.rows() / context.batch)});
}

void AttentionCore::backward(const Context& context, Tensor qkv, Tensor mixed, Tensor log_sum_exp, Tensor d_mixed,
                             Tensor d_qkv) const {
  const ArenaScope scope(context.scratch);
  const Heads heads = split(qkv);
  const Heads d_heads = split(d_qkv);
  if (context.samples.group != nullptr) {
    const int64_t q = config_.query_width();
    backward_shared(context, heads, qkv.slice_cols(q, qkv.cols()), mixed, log_sum_exp, d_mixed, d_qkv);
    return;
  }
  ops::attention_backward(context.stream, {.dout = d_mixed,
                                           .q = heads.q,
                                           .k = heads.k,
                                           .v = heads.v,
                                           .out = mixed,
                                           .log_sum_exp = log_sum_exp,
                                           .dq = d_heads.q,
                                           .dk = d_heads.k,
                                           .dv = d_heads.v,
                                           .batch = context.batch,
                                           .heads = config_.heads,
                                           .kv_heads = config_.kv_heads,
                                           .scale = scale(),
                                           .document_starts = context.document_starts,
                                           .document_bounds = context.document_bounds,
                                           .dropout = dropout(context),
                                           .head_offset = head_offset(context),
                                           .deterministic = context.deterministic,
                                           .scratch = allocate_scratch(context, context.batch, context.length)});
}

std::vector<AttentionCore::BlockView> AttentionCore::blocks_of(const Context& context) const {
  const ContextSplit& split = context.samples.split;
  std::vector<BlockView> blocks;
  for (int64_t sequence = 0; sequence < context.batch; ++sequence) {
    const parallel::Interval positions = positions_of(split, sequence % 2 == 0 ? Half::front : Half::back);
    blocks.push_back({.sequence = sequence,
                      .begin = positions.begin,
                      .first_key_row = sequence / 2 * split.length,
                      .keys = positions.end});
  }
  return blocks;
}

namespace {

Tensor elements_of(const Tensor& vector, int64_t begin, int64_t end) {
  if (!vector) return {};
  return vector.view({vector.elements(), 1}).slice_rows(begin, end).view({end - begin});
}

}  // namespace

void AttentionCore::forward_shared(const Context& context, const Heads& heads, Tensor kv, Tensor mixed,
                                   Tensor log_sum_exp) const {
  const Tensor whole = gather_samples(context, kv);
  for (const BlockView& block : blocks_of(context)) {
    const ArenaScope scope(context.scratch);
    const int64_t begin = block.sequence * context.length;
    const int64_t end = begin + context.length;
    const Tensor keys = whole.slice_rows(block.first_key_row, block.first_key_row + block.keys);
    ops::attention_forward(context.stream, {.q = heads.q.slice_rows(begin, end),
                                            .k = keys.slice_cols(0, config_.kv_width()),
                                            .v = keys.slice_cols(config_.kv_width(), keys.cols()),
                                            .out = mixed.slice_rows(begin, end),
                                            .log_sum_exp = log_sum_exp.slice_rows(block.sequence * config_.heads,
                                                                                  (block.sequence + 1) * config_.heads),
                                            .batch = 1,
                                            .heads = config_.heads,
                                            .kv_heads = config_.kv_heads,
                                            .query_offset = block.begin,
                                            .scale = scale(),
                                            .document_starts = elements_of(context.document_starts, begin, end),
                                            .dropout = dropout_of_block(context, block.sequence),
                                            .head_offset = head_offset(context),
                                            .dropout_keys = context.samples.split.length,
                                            .scratch = allocate_scratch(context, 1, block.keys)});
  }
}

void AttentionCore::backward_shared(const Context& context, const Heads& heads, Tensor kv, Tensor mixed,
                                    Tensor log_sum_exp, Tensor d_mixed, Tensor d_qkv) const {
  const Tensor whole = gather_samples(context, kv);
  const Tensor d_whole = context.scratch.allocate("attention.d_samples", config_.compute, whole.shape);
  const Tensor d_block =
      context.scratch.allocate("attention.d_block", config_.compute, {context.samples.split.length, whole.cols()});
  const int64_t kv_width = config_.kv_width();
  ops::fill(context.stream, {.x = d_whole, .value = 0.0});
  for (const BlockView& block : blocks_of(context)) {
    const ArenaScope scope(context.scratch);
    const int64_t begin = block.sequence * context.length;
    const int64_t end = begin + context.length;
    const int64_t last_key_row = block.first_key_row + block.keys;
    const Tensor keys = whole.slice_rows(block.first_key_row, last_key_row);
    const Tensor d_keys = d_block.slice_rows(0, block.keys);
    const Tensor d_q = d_qkv.slice_cols(0, config_.query_width());
    ops::attention_backward(context.stream, {.dout = d_mixed.slice_rows(begin, end),
                                             .q = heads.q.slice_rows(begin, end),
                                             .k = keys.slice_cols(0, kv_width),
                                             .v = keys.slice_cols(kv_width, keys.cols()),
                                             .out = mixed.slice_rows(begin, end),
                                             .log_sum_exp = log_sum_exp.slice_rows(
                                                 block.sequence * config_.heads, (block.sequence + 1) * config_.heads),
                                             .dq = d_q.slice_rows(begin, end),
                                             .dk = d_keys.slice_cols(0, kv_width),
                                             .dv = d_keys.slice_cols(kv_width, keys.cols()),
                                             .batch = 1,
                                             .heads = config_.heads,
                                             .kv_heads = config_.kv_heads,
                                             .query_offset = block.begin,
                                             .scale = scale(),
                                             .document_starts = elements_of(context.document_starts, begin, end),
                                             .dropout = dropout_of_block(context, block.sequence),
                                             .head_offset = head_offset(context),
                                             .dropout_keys = context.samples.split.length,
                                             .deterministic = context.deterministic,
                                             .scratch = allocate_scratch(context, 1, block.keys)});
    const Tensor sum = d_whole.slice_rows(block.first_key_row, last_key_row);
    ops::dropout_add(context.stream, {.x = d_keys, .residual = sum, .y = sum});
  }
  const Tensor d_kv = scatter_samples(context, d_whole);
  ops::cast(context.stream, {.x = d_kv, .y = d_qkv.slice_cols(config_.query_width(), d_qkv.cols())});
}

namespace {

// Copies between the order of the ranks (rank, sample, half) and that of the samples.
enum class Direction { to_samples, to_ranks };
void reorder(const Context& context, const Tensor& by_rank, const Tensor& by_sample, Direction direction) {
  ContextSplit split = context.samples.split;
  const int64_t samples = context.batch / 2;
  int64_t row = 0;
  for (split.rank = 0; split.rank < split.ranks; ++split.rank) {
    for (int64_t sample = 0; sample < samples; ++sample) {
      for (const Half half : {Half::front, Half::back}) {
        const parallel::Interval positions = shifted(positions_of(split, half), sample * split.length);
        const Tensor of_rank = by_rank.slice_rows(row, row + positions.size());
        const Tensor of_sample = by_sample.slice_rows(positions.begin, positions.end);
        if (direction == Direction::to_samples) {
          copy(context.stream, of_rank, of_sample);
        } else {
          copy(context.stream, of_sample, of_rank);
        }
        row += positions.size();
      }
    }
  }
}

}  // namespace

Tensor AttentionCore::gather_samples(const Context& context, const Tensor& kv) const {
  const int64_t rows = kv.rows() * context.samples.group->size();
  const Tensor whole = context.scratch.allocate("attention.samples", kv.dtype, {rows, kv.cols()});
  const ArenaScope scope(context.scratch);
  const Tensor own = context.scratch.allocate("attention.own_kv", kv.dtype, {kv.rows(), kv.cols()});
  const Tensor by_rank = context.scratch.allocate("attention.kv_by_rank", kv.dtype, {rows, kv.cols()});
  ops::cast(context.stream, {.x = kv, .y = own});
  context.samples.group->all_gather(context.stream, own, by_rank).wait(context.stream);
  reorder(context, by_rank, whole, Direction::to_samples);
  return whole;
}

Tensor AttentionCore::scatter_samples(const Context& context, const Tensor& whole) const {
  const Tensor by_rank = context.scratch.allocate("attention.d_kv_by_rank", whole.dtype, whole.shape);
  reorder(context, by_rank, whole, Direction::to_ranks);
  const int64_t rows = div_exact(whole.rows(), context.samples.group->size());
  const int64_t first = context.samples.group->rank() * rows;
  const Tensor own = by_rank.slice_rows(first, first + rows);
  context.samples.group->reduce_scatter(context.stream, by_rank, own).wait(context.stream);
  return own;
}

Heads AttentionCore::through_cache(const Context& context, const Heads& heads) const {
  MEGALITH_CHECK(context.batch == 1, "a cache holds one sequence, the batch has {}", context.batch);
  const auto layer = static_cast<size_t>(layer_);
  const int64_t begin = context.position_offset;
  const int64_t end = begin + context.length;
  ops::cast(context.stream, {.x = heads.k, .y = context.cache->keys[layer].slice_rows(begin, end)});
  ops::cast(context.stream, {.x = heads.v, .y = context.cache->values[layer].slice_rows(begin, end)});
  return {.q = heads.q,
          .k = context.cache->keys[layer].slice_rows(0, end),
          .v = context.cache->values[layer].slice_rows(0, end)};
}

ops::Dropout AttentionCore::dropout_of_block(const Context& context, int64_t sequence) const {
  ops::Dropout drawn = dropout(context);
  if (drawn.probability > 0.0) drawn.sample_ids = elements_of(context.sample_ids, sequence, sequence + 1);
  return drawn;
}

Tensor AttentionCore::allocate_scratch(const Context& context, int64_t batch, int64_t keys) const {
  const Tensor& bounds = context.document_bounds;
  const int64_t elements = ops::attention_scratch(context.stream.device(),
                                                  {.dtype = config_.compute,
                                                   .batch = batch,
                                                   .heads = config_.heads,
                                                   .kv_heads = config_.kv_heads,
                                                   .query_length = context.length,
                                                   .key_length = keys,
                                                   .head_dim = config_.head_dim,
                                                   .documents = bounds ? bounds.elements() - 1 : 0},
                                                  context.stream.pool().threads());
  return context.scratch.allocate("attention.blocks", main_dtype(config_.compute), {elements});
}

double AttentionCore::scale() const {
  return 1.0 / std::sqrt(static_cast<double>(config_.head_dim));
}

}  // namespace megalith::model
