#include <optional>

#include "ops/cpu/attention.h"

namespace megalith::ops::cpu {

namespace {

template <class M>
M dot(const M* a, const M* b, int64_t count) {
  M sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// Scores to softmax weights of the keys [begin, end) that a query sees, with the statistics of the forward pass.
template <class M>
void weights_from_scores(M* scores, int64_t begin, int64_t end, int64_t count, M log_sum_exp) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) scores[i] = fast_exp(scores[i] - log_sum_exp);
  std::fill(scores, scores + begin, M(0));
  std::fill(scores + end, scores + count, M(0));
}

template <class M>
void product_of(const M* a, const M* b, int64_t count, M* out) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = a[i] * b[i];
}

// dscores = weights * (dweights - delta), where delta = sum(weights * dweights) over the row = dout . out.
template <class M>
void score_gradients(const M* weights, M* gradients, int64_t count, M delta) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) gradients[i] = weights[i] * (gradients[i] - delta);
}

template <class M>
void clear(Block<M> block, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) std::fill_n(block.data + r * block.stride, cols, M(0));
}

// One key-value head of one sample, with all the query heads that read it: the only writer of its dk and dv.
template <class T>
class BackwardTile {
 public:
  using M = Main<T>;

  BackwardTile(const AttentionBackward& args, const AttentionSizes& sizes, int64_t sample, int64_t kv_head, M* scratch)
      : args_(args),
        forward_(args.forward),
        queries_(sizes.queries),
        keys_(sizes.keys),
        dim_(sizes.dim),
        sample_(sample),
        kv_head_(kv_head),
        documents_(forward_.document_starts, sample, sizes.queries) {
    Carver<M> carver(scratch);
    weights_ = carver.take(kQueryBlock * kKeyBlock);
    dropped_ = carver.take(kQueryBlock * kKeyBlock);
    gradients_ = carver.take(kQueryBlock * kKeyBlock);
    wide_q_ = carver.take(kQueryBlock * dim_);
    wide_dout_ = carver.take(kQueryBlock * dim_);
    wide_out_ = carver.take(kQueryBlock * dim_);
    wide_k_ = carver.take(kKeyBlock * dim_);
    wide_v_ = carver.take(kKeyBlock * dim_);
    dq_memory_ = carver.take(queries_ * dim_);
    dk_memory_ = carver.take(keys_ * dim_);
    dv_memory_ = carver.take(keys_ * dim_);
    deltas_ = carver.take(queries_);
  }

  void run() {
    const auto dk = head_block<T>(args_.dk, keys_, dim_, sample_, kv_head_);
    const auto dv = head_block<T>(args_.dv, keys_, dim_, sample_, kv_head_);
    dk_ = sum_of<T>(dk, dim_, dk_memory_);
    dv_ = sum_of<T>(dv, dim_, dv_memory_);
    clear(dk_, keys_, dim_);
    clear(dv_, keys_, dim_);
    const int64_t group = forward_.heads / forward_.kv_heads;
    for (int64_t head = kv_head_ * group; head < (kv_head_ + 1) * group; ++head) run_head(head);
    store_sum<T>(dk_, keys_, dim_, dk);
    store_sum<T>(dv_, keys_, dim_, dv);
  }

 private:
  void run_head(int64_t head) {
    const auto dq = head_block<T>(args_.dq, queries_, dim_, sample_, head);
    dq_ = sum_of<T>(dq, dim_, dq_memory_);
    clear(dq_, queries_, dim_);
    q_ = head_block<T>(forward_.q, queries_, dim_, sample_, head);
    dout_ = head_block<T>(args_.dout, queries_, dim_, sample_, head);
    log_sum_exp_ = forward_.log_sum_exp.row<M>(sample_ * forward_.heads + head);
    dropout_.reset();
    if (forward_.dropout.probability > 0.0) dropout_.emplace(forward_, sample_, head, keys_);
    compute_deltas(head);
    const int64_t visible = forward_.query_offset + queries_;  // to the last query
    for (int64_t key = 0; key < visible; key += kKeyBlock) run_keys(key, std::min(kKeyBlock, visible - key));
    store_sum<T>(dq_, queries_, dim_, dq);
  }

  void compute_deltas(int64_t head) {
    const auto out = head_block<T>(forward_.out, queries_, dim_, sample_, head);
    for (int64_t first = 0; first < queries_; first += kQueryBlock) {
      const int64_t rows = std::min(kQueryBlock, queries_ - first);
      const Block<const M> a = in_main<T>(dout_.from_row(first), rows, dim_, wide_dout_);
      const Block<const M> b = in_main<T>(out.from_row(first), rows, dim_, wide_out_);
      for (int64_t r = 0; r < rows; ++r) deltas_[first + r] = dot(a.data + r * a.stride, b.data + r * b.stride, dim_);
    }
  }

  void run_keys(int64_t key, int64_t keys) {
    const auto k = head_block<T>(forward_.k, keys_, dim_, sample_, kv_head_);
    const auto v = head_block<T>(forward_.v, keys_, dim_, sample_, kv_head_);
    const Block<const M> k_block = in_main<T>(k.from_row(key), keys, dim_, wide_k_);
    const Block<const M> v_block = in_main<T>(v.from_row(key), keys, dim_, wide_v_);
    const int64_t first_seeing = std::max<int64_t>(0, key - forward_.query_offset);
    for (int64_t first = first_seeing / kQueryBlock * kQueryBlock; first < queries_; first += kQueryBlock) {
      // From here on no query sees these keys any more.
      if (documents_.of(first) >= key + keys) break;
      const int64_t rows = std::min(kQueryBlock, queries_ - first);
      run_block(key, std::min(keys, forward_.query_offset + first + rows - key), k_block, v_block, first, rows);
    }
  }

  // Queries [first, first + rows) against the keys [key, key + count).
  void run_block(int64_t key, int64_t count, Block<const M> k, Block<const M> v, int64_t first, int64_t rows) {
    const auto scale = static_cast<M>(forward_.scale);
    const Block<const M> q = in_main<T>(q_.from_row(first), rows, dim_, wide_q_);
    const Block<const M> dout = in_main<T>(dout_.from_row(first), rows, dim_, wide_dout_);
    const Block<M> weights{weights_, count};
    const Block<M> gradients{gradients_, count};
    multiply(BlockProduct<M>{
        .m = rows, .n = count, .k = dim_, .alpha = scale, .a = q, .b = k, .transpose_b = true, .c = weights});
    multiply(BlockProduct<M>{.m = rows, .n = count, .k = dim_, .a = dout, .b = v, .transpose_b = true, .c = gradients});
    for (int64_t row = 0; row < rows; ++row) differentiate_row(first + row, row, key, count);
    add_product(rows, count, M(1), {dropout_ ? dropped_ : weights_, count}, true, dout, dv_.from_row(key));
    add_product(rows, count, scale, {gradients_, count}, true, q, dk_.from_row(key));
    add_product(rows, count, scale, {gradients_, count}, false, k, dq_.from_row(first));
  }

  // sum += scale * op(a) b, a (rows, count).
  void add_product(int64_t rows, int64_t count, M scale, Block<const M> a, bool transpose_a, Block<const M> b,
                   Block<M> sum) {
    multiply(BlockProduct<M>{.m = transpose_a ? count : rows,
                             .n = dim_,
                             .k = transpose_a ? rows : count,
                             .alpha = scale,
                             .a = a,
                             .transpose_a = transpose_a,
                             .b = b,
                             .beta = M(1),
                             .c = sum});
  }

  // From scores and gradients of the (dropped) weights to weights and gradients of the scores, for one query.
  void differentiate_row(int64_t query, int64_t row, int64_t key, int64_t count) {
    const int64_t position = forward_.query_offset + query;
    const int64_t end = std::clamp<int64_t>(position + 1 - key, 0, count);
    const int64_t begin = std::clamp<int64_t>(documents_.of(query) - key, 0, end);
    M* weights = weights_ + row * count;
    M* gradients = gradients_ + row * count;
    weights_from_scores(weights, begin, end, count, log_sum_exp_[query]);
    if (dropout_) {
      std::array<M, kKeyBlock> factors{};
      dropout_->draw(position, key, end, factors.data());
      product_of(weights, factors.data(), count, dropped_ + row * count);
      product_of(gradients, factors.data(), count, gradients);
    }
    score_gradients(weights, gradients, count, deltas_[query]);
  }

  const AttentionBackward& args_;
  const AttentionForward& forward_;
  int64_t queries_, keys_, dim_, sample_, kv_head_;
  DocumentStarts documents_;
  M *weights_, *dropped_, *gradients_;
  M *wide_q_, *wide_dout_, *wide_out_, *wide_k_, *wide_v_;
  M *dq_memory_, *dk_memory_, *dv_memory_;
  M* deltas_;
  const M* log_sum_exp_ = nullptr;
  Block<T> q_{}, dout_{};
  Block<M> dq_{}, dk_{}, dv_{};
  std::optional<WeightDropout<M>> dropout_;
};

}  // namespace

void attention_backward(Stream& stream, const AttentionBackward& args) {
  const AttentionForward& forward = args.forward;
  const AttentionSizes sizes(forward);
  dispatch_float(forward.q.dtype, [&]<class T>(std::type_identity<T>) {
    using M = Main<T>;
    run_with_scratch(stream, forward.batch * forward.kv_heads, forward.scratch.as<M>(),
                     attention_scratch_part(sizes.keys, sizes.dim), [&](int64_t tile, M* scratch) {
                       const int64_t sample = tile / forward.kv_heads;
                       BackwardTile<T>(args, sizes, sample, tile % forward.kv_heads, scratch).run();
                     });
  });
}

}  // namespace megalith::ops::cpu
