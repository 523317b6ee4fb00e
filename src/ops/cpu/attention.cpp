#include "ops/cpu/attention.h"

#include <optional>

namespace megalith::ops::cpu {

namespace {

// The running softmax of one row (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
template <class M>
struct RowState {
  M maximum = -std::numeric_limits<M>::infinity();
  M sum = 0;
};

template <class M>
M maximum_of(const M* values, int64_t count, M floor) {
  M maximum = floor;
#pragma omp simd reduction(max : maximum)
  for (int64_t i = 0; i < count; ++i) maximum = maximum < values[i] ? values[i] : maximum;
  return maximum;
}

template <class M>
M exp_in_place(M* values, int64_t count, M maximum) {
  M sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    const M weight = fast_exp(values[i] - maximum);
    values[i] = weight;
    sum += weight;
  }
  return sum;
}

template <class M>
void scale_row(M* values, int64_t count, M factor) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) values[i] *= factor;
}

template <class M>
void multiply_rows(M* values, const M* factors, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) values[i] *= factors[i];
}

// Turns a row's scores against a block of keys into weights relative to the row's maximum so far, zero outside of
// [begin, end), which it sees; returns what the sums so far must be multiplied by.
template <class M>
M absorb_scores(RowState<M>& state, M* scores, int64_t begin, int64_t end, int64_t count) {
  std::fill(scores, scores + begin, M(0));
  std::fill(scores + end, scores + count, M(0));
  if (begin == end) return M(1);
  const M maximum = maximum_of(scores + begin, end - begin, state.maximum);
  const M correction = fast_exp(state.maximum - maximum);
  state.sum = state.sum * correction + exp_in_place(scores + begin, end - begin, maximum);
  state.maximum = maximum;
  return correction;
}

// One block of queries of one head, against all the keys it sees.
template <class T>
class ForwardTile {
 public:
  using M = Main<T>;

  ForwardTile(const AttentionForward& args, const AttentionSizes& sizes, int64_t sample, int64_t head, int64_t first,
              M* scratch)
      : args_(args),
        sizes_(sizes),
        first_(first),
        rows_(std::min(kQueryBlock, sizes.queries - first)),
        documents_(args.document_starts, sample, sizes.queries),
        k_(head_block<T>(args.k, sizes.keys, sizes.dim, sample, head / sizes.group)),
        v_(head_block<T>(args.v, sizes.keys, sizes.dim, sample, head / sizes.group)),
        out_(head_block<T>(args.out, sizes.queries, sizes.dim, sample, head).from_row(first)),
        log_sum_exp_(args.log_sum_exp.row<M>(sample * args.heads + head) + first) {
    Carver<M> carver(scratch);
    scores_ = carver.take(kQueryBlock * kKeyBlock);
    wide_k_ = carver.take(kKeyBlock * sizes.dim);
    wide_v_ = carver.take(kKeyBlock * sizes.dim);
    const auto q = head_block<T>(args.q, sizes.queries, sizes.dim, sample, head);
    q_ = in_main<T>(q.from_row(first), rows_, sizes.dim, carver.take(kQueryBlock * sizes.dim));
    sum_ = sum_of<T>(out_, sizes.dim, carver.take(kQueryBlock * sizes.dim));
    if (args.dropout.probability > 0.0) dropout_.emplace(args, sample, head, sizes.keys);
  }

  void run() {
    const int64_t visible = args_.query_offset + first_ + rows_;  // to the last row
    first_key_ = documents_.of(first_) / kKeyBlock * kKeyBlock;   // for the first row
    for (int64_t key = first_key_; key < visible; key += kKeyBlock) {
      absorb_keys(key, std::min(kKeyBlock, visible - key));
    }
    finish();
  }

 private:
  void absorb_keys(int64_t key, int64_t count) {
    const int64_t dim = sizes_.dim;
    multiply(BlockProduct<M>{.m = rows_,
                             .n = count,
                             .k = dim,
                             .alpha = static_cast<M>(args_.scale),
                             .a = q_,
                             .b = in_main<T>(k_.from_row(key), count, dim, wide_k_),
                             .transpose_b = true,
                             .c = {scores_, count}});
    for (int64_t row = 0; row < rows_; ++row) absorb_row(row, key, count);
    multiply(BlockProduct<M>{.m = rows_,
                             .n = dim,
                             .k = count,
                             .a = {scores_, count},
                             .b = in_main<T>(v_.from_row(key), count, dim, wide_v_),
                             .beta = key == first_key_ ? M(0) : M(1),
                             .c = sum_});
  }

  void absorb_row(int64_t row, int64_t key, int64_t count) {
    const int64_t position = args_.query_offset + first_ + row;
    const int64_t end = std::clamp<int64_t>(position + 1 - key, 0, count);
    const int64_t begin = std::clamp<int64_t>(documents_.of(first_ + row) - key, 0, end);
    M* scores = scores_ + row * count;
    const M correction = absorb_scores(states_[row], scores, begin, end, count);
    if (key > first_key_ && correction != M(1)) scale_row(sum_.data + row * sum_.stride, sizes_.dim, correction);
    if (dropout_) {
      std::array<M, kKeyBlock> factors;
      dropout_->draw(position, key, end, factors.data());
      multiply_rows(scores, factors.data(), end);
    }
  }

  void finish() {
    for (int64_t row = 0; row < rows_; ++row) {
      scale_row(sum_.data + row * sum_.stride, sizes_.dim, M(1) / states_[row].sum);
      log_sum_exp_[row] = states_[row].maximum + std::log(states_[row].sum);
    }
    store_sum<T>(sum_, rows_, sizes_.dim, out_);
  }

  const AttentionForward& args_;
  const AttentionSizes& sizes_;
  int64_t first_;
  int64_t rows_;
  int64_t first_key_ = 0;
  DocumentStarts documents_;
  Block<const M> q_{};
  Block<T> k_;
  Block<T> v_;
  Block<T> out_;
  Block<M> sum_{};
  M* log_sum_exp_;
  M* scores_;
  M* wide_k_;
  M* wide_v_;
  std::array<RowState<M>, kQueryBlock> states_;
  std::optional<WeightDropout<M>> dropout_;
};

}  // namespace

void attention_forward(Stream& stream, const AttentionForward& args) {
  const AttentionSizes sizes(args);
  const int64_t blocks = ceil_div(sizes.queries, kQueryBlock);
  const int64_t pairs = args.batch * args.heads;
  dispatch_float(args.q.dtype, [&]<class T>(std::type_identity<T>) {
    using M = Main<T>;
    run_with_scratch(
        stream, blocks * pairs, args.scratch.as<M>(), attention_scratch_part(sizes.keys, sizes.dim),
        [&](int64_t tile, M* scratch) {
          const int64_t block = blocks - 1 - tile / pairs;  // the last see most keys: start with them
          const int64_t pair = tile % pairs;
          ForwardTile<T>(args, sizes, pair / args.heads, pair % args.heads, block * kQueryBlock, scratch).run();
        });
  });
}

}  // namespace megalith::ops::cpu
