#include "model/layers/attention_core.h"

#include <cmath>

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
  const Outputs outputs{.mixed = mixed, .log_sum_exp = log_sum_exp};
  if (context.samples.are_shared()) {
    forward_shared(context, qkv, outputs);
    return;
  }
  if (context.cache != nullptr) {
    forward_cached(context, qkv, outputs);
    return;
  }
  forward_part(context, whole(context), split(qkv), outputs);
}

void AttentionCore::backward(const Context& context, Tensor qkv, Tensor mixed, Tensor log_sum_exp, Tensor d_mixed,
                             Tensor d_qkv) const {
  const Outputs outputs{.mixed = mixed, .log_sum_exp = log_sum_exp};
  if (context.samples.are_shared()) {
    backward_shared(context, qkv, outputs, d_mixed, d_qkv);
    return;
  }
  backward_part(context, whole(context), split(qkv), outputs, {.d_mixed = d_mixed, .d_heads = split(d_qkv)});
}

AttentionCore::Part AttentionCore::whole(const Context& context) const {
  return {.batch = context.batch,
          .query_offset = context.position_offset,
          .document_starts = context.document_starts,
          .document_bounds = context.document_bounds,
          .dropout = dropout(context)};
}

ops::AttentionForward AttentionCore::operation(const Context& context, const Part& part, const Heads& heads,
                                               const Outputs& outputs) const {
  return {.q = heads.q,
          .k = heads.k,
          .v = heads.v,
          .out = outputs.mixed,
          .log_sum_exp = outputs.log_sum_exp,
          .batch = part.batch,
          .heads = config_.heads,
          .kv_heads = config_.kv_heads,
          .query_offset = part.query_offset,
          .scale = 1.0 / std::sqrt(static_cast<double>(config_.head_dim)),
          .document_starts = part.document_starts,
          .document_bounds = part.document_bounds,
          .dropout = part.dropout,
          .head_offset = head_offset(context),
          .dropout_keys = part.dropout_keys,
          .scratch = allocate_scratch(context, part, heads)};
}

void AttentionCore::forward_part(const Context& context, const Part& part, const Heads& heads,
                                 const Outputs& outputs) const {
  const ArenaScope scope(context.scratch);
  ops::attention_forward(context.stream, operation(context, part, heads, outputs));
}

void AttentionCore::backward_part(const Context& context, const Part& part, const Heads& heads, const Outputs& outputs,
                                  const Gradients& gradients) const {
  const ArenaScope scope(context.scratch);
  ops::attention_backward(context.stream, {.forward = operation(context, part, heads, outputs),
                                           .dout = gradients.d_mixed,
                                           .dq = gradients.d_heads.q,
                                           .dk = gradients.d_heads.k,
                                           .dv = gradients.d_heads.v,
                                           .deterministic = context.deterministic});
}

namespace {

Tensor elements_of(const Tensor& vector, const parallel::Interval& which) {
  if (!vector) return {};
  return vector.view({vector.elements(), 1}).slice_rows(which.begin, which.end).view({which.size()});
}

Tensor rows_of(const Tensor& matrix, const parallel::Interval& which) {
  return matrix.slice_rows(which.begin, which.end);
}

}  // namespace

std::vector<AttentionCore::Block> AttentionCore::blocks_of(const Context& context) const {
  const ContextSplit& split = context.samples.split;
  std::vector<Block> blocks;
  for (int64_t sequence = 0; sequence < context.batch; ++sequence) {
    const parallel::Interval positions = positions_of(split, sequence % 2 == 0 ? Half::front : Half::back);
    const int64_t first_key = sequence / 2 * split.length;
    Block& block = blocks.emplace_back(
        Block{.tokens = {sequence * context.length, (sequence + 1) * context.length},
              .statistics = {sequence * config_.heads, (sequence + 1) * config_.heads},
              .keys = {first_key, first_key + positions.end},
              .part = {.query_offset = positions.begin, .dropout = dropout(context), .dropout_keys = split.length}});
    block.part.document_starts = elements_of(context.document_starts, block.tokens);
    if (block.part.dropout.probability > 0.0)
      block.part.dropout.sample_ids = elements_of(context.sample_ids, {sequence, sequence + 1});
  }
  return blocks;
}

void AttentionCore::forward_shared(const Context& context, Tensor qkv, const Outputs& outputs) const {
  const ArenaScope scope(context.scratch);
  const Tensor samples = gather_samples(context, keys_and_values(qkv));
  const int64_t kv = config_.kv_width();
  for (const Block& block : blocks_of(context)) {
    const Tensor keys = rows_of(samples, block.keys);
    forward_part(
        context, block.part,
        {.q = rows_of(split(qkv).q, block.tokens), .k = keys.slice_cols(0, kv), .v = keys.slice_cols(kv, 2 * kv)},
        {.mixed = rows_of(outputs.mixed, block.tokens), .log_sum_exp = rows_of(outputs.log_sum_exp, block.statistics)});
  }
}

void AttentionCore::backward_shared(const Context& context, Tensor qkv, const Outputs& outputs, Tensor d_mixed,
                                    Tensor d_qkv) const {
  const ArenaScope scope(context.scratch);
  const int64_t kv = config_.kv_width();
  const Tensor samples = gather_samples(context, keys_and_values(qkv));
  const Tensor d_samples = context.scratch.allocate("attention.d_samples", config_.compute, samples.shape);
  const Tensor d_block =
      context.scratch.allocate("attention.d_block", config_.compute, {context.samples.split.length, samples.cols()});
  ops::fill(context.stream, {.x = d_samples, .value = 0.0});
  for (const Block& block : blocks_of(context)) {
    const Tensor keys = rows_of(samples, block.keys);
    const Tensor d_keys = d_block.slice_rows(0, block.keys.size());
    backward_part(
        context, block.part,
        {.q = rows_of(split(qkv).q, block.tokens), .k = keys.slice_cols(0, kv), .v = keys.slice_cols(kv, 2 * kv)},
        {.mixed = rows_of(outputs.mixed, block.tokens), .log_sum_exp = rows_of(outputs.log_sum_exp, block.statistics)},
        {.d_mixed = rows_of(d_mixed, block.tokens),
         .d_heads = {.q = rows_of(split(d_qkv).q, block.tokens),
                     .k = d_keys.slice_cols(0, kv),
                     .v = d_keys.slice_cols(kv, 2 * kv)}});
    const Tensor sum = rows_of(d_samples, block.keys);
    ops::add(context.stream, {.a = d_keys, .b = sum, .y = sum});
  }
  ops::cast(context.stream, {.x = scatter_samples(context, d_samples), .y = keys_and_values(d_qkv)});
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

void AttentionCore::forward_cached(const Context& context, Tensor qkv, const Outputs& outputs) const {
  const Heads heads = split(qkv);
  for (int64_t sequence = 0; sequence < context.batch; ++sequence) {
    const KvCache::Sequence& cached = context.cache->sequences[static_cast<size_t>(sequence)];
    const parallel::Interval tokens{sequence * context.length, (sequence + 1) * context.length};
    const parallel::Interval statistics{sequence * config_.heads, (sequence + 1) * config_.heads};
    const Heads own{.q = rows_of(heads.q, tokens), .k = rows_of(heads.k, tokens), .v = rows_of(heads.v, tokens)};
    forward_part(context, {.query_offset = cached.position}, through_cache(context, cached, own),
                 {.mixed = rows_of(outputs.mixed, tokens), .log_sum_exp = rows_of(outputs.log_sum_exp, statistics)});
  }
}

Heads AttentionCore::through_cache(const Context& context, const KvCache::Sequence& cached, const Heads& heads) const {
  const auto layer = static_cast<size_t>(layer_);
  const int64_t begin = cached.first_row + cached.position;
  const int64_t end = begin + context.length;
  ops::cast(context.stream, {.x = heads.k, .y = context.cache->keys[layer].slice_rows(begin, end)});
  ops::cast(context.stream, {.x = heads.v, .y = context.cache->values[layer].slice_rows(begin, end)});
  return {.q = heads.q,
          .k = context.cache->keys[layer].slice_rows(cached.first_row, end),
          .v = context.cache->values[layer].slice_rows(cached.first_row, end)};
}

Tensor AttentionCore::allocate_scratch(const Context& context, const Part& part, const Heads& heads) const {
  const Tensor& bounds = part.document_bounds;
  const int64_t elements = ops::attention_scratch(context.stream.device(),
                                                  {.dtype = config_.compute,
                                                   .batch = part.batch,
                                                   .heads = config_.heads,
                                                   .kv_heads = config_.kv_heads,
                                                   .query_length = heads.q.rows() / part.batch,
                                                   .key_length = heads.k.rows() / part.batch,
                                                   .head_dim = config_.head_dim,
                                                   .documents = bounds ? bounds.elements() - 1 : 0},
                                                  context.stream.threads());
  return context.scratch.allocate("attention.blocks", main_dtype(config_.compute), {elements});
}

}  // namespace megalith::model
