#include "cost/memory.h"

#include <algorithm>

#include "core/arena.h"

namespace megalith::cost {

namespace {

class Sizes {
 public:
  explicit Sizes(const MemoryInputs& inputs) : in_(inputs), main_(main_dtype(inputs.compute)) {}

  int64_t activations() const {
    int64_t bytes = 2 * Arena::footprint(DType::f32, in_.rope_elements) + in_.stream_buffers * stream() +
                    in_.recomputed_together * (saved_by_layer(true) + stream());
    for (const MemoryInputs::Chunk& chunk : in_.chunks) {
      bytes += chunk.slots * (chunk.kept_layers * saved_by_layer(in_.keeps_recomputable) +
                              std::max<int64_t>(0, chunk.groups - 1) * stream());
    }
    return bytes;
  }

  int64_t scratch() const {
    return std::max({attention_forward(), mlp_forward(), layer_backward(), head(), embedding()});
  }

  // What the weight gradients of a layer read that are made later.
  int64_t deferred_by_layer() const {
    if (!in_.defers_products) return 0;
    const int64_t normed = divides_tokens() ? all() : if_recomputed(stream());
    return qkv() + all() + normed + all() + if_recomputed(activated()) + normed;
  }
  int64_t deferred() const {
    int64_t bytes = 0;
    for (const MemoryInputs::Chunk& chunk : in_.chunks) bytes += chunk.slots * chunk.kept_layers * deferred_by_layer();
    return bytes;
  }

  int64_t batch() const {
    const int64_t of_micro_batch = 4 * Arena::footprint(DType::i32, tokens()) + Arena::footprint(main_, tokens()) +
                                   Arena::footprint(DType::i64, in_.batch) + Arena::footprint(DType::i32, in_.batch) +
                                   Arena::footprint(DType::i32, in_.document_bounds) +
                                   in_.orders_of_rows * 2 * Arena::footprint(DType::i32, tokens());
    return in_.batches * of_micro_batch + Arena::footprint(DType::i32, in_.order_scratch_elements) +
           Arena::footprint(main_, tokens()) + 2 * Arena::kAlignment;
  }

 private:
  int64_t tokens() const { return in_.batch * in_.length; }
  int64_t compute(int64_t elements) const { return Arena::footprint(in_.compute, elements); }
  int64_t stream() const { return compute(in_.rows * in_.hidden); }
  int64_t all() const { return compute(tokens() * in_.hidden); }
  bool divides_tokens() const { return in_.rows < tokens(); }
  int64_t gathered() const { return divides_tokens() ? all() : 0; }
  int64_t statistics() const { return (in_.norm_has_mean ? 2 : 1) * Arena::footprint(main_, in_.rows); }
  int64_t if_recomputed(int64_t bytes) const { return in_.keeps_recomputable ? 0 : bytes; }
  int64_t activated() const { return compute(tokens() * in_.ffn); }
  int64_t qkv() const { return compute(tokens() * (in_.query_width + 2 * in_.kv_width)); }

  int64_t saved_by_layer(bool keeps) const {
    const int64_t attention = statistics() + (keeps ? stream() : 0) + qkv() + compute(tokens() * in_.query_width) +
                              Arena::footprint(main_, in_.heads * tokens());
    const int64_t mlp = statistics() + compute(tokens() * in_.up_width) + (keeps ? stream() + activated() : 0);
    return attention + stream() + mlp;
  }

  int64_t attention_blocks() const { return Arena::footprint(main_, in_.attention_scratch_elements); }
  int64_t norm_partial_sums() const { return Arena::footprint(main_, in_.norm_scratch_elements); }
  int64_t bias_partial_sums(int64_t elements) const { return Arena::footprint(main_, elements); }

  // Keys and values: of this rank's tokens, of whole samples, of one sample.
  int64_t own_kv() const { return compute(tokens() * 2 * in_.kv_width); }
  int64_t whole_kv() const { return compute(in_.context_ranks * tokens() * 2 * in_.kv_width); }
  int64_t sample_kv() const { return compute(2 * in_.context_ranks * in_.length * 2 * in_.kv_width); }
  int64_t core_forward() const {
    if (in_.context_ranks == 1) return attention_blocks();
    return whole_kv() + std::max(own_kv() + whole_kv(), attention_blocks());
  }
  int64_t core_backward() const {
    if (in_.context_ranks == 1) return attention_blocks();
    return whole_kv() +
           std::max(own_kv() + whole_kv(), whole_kv() + sample_kv() + std::max(attention_blocks(), whole_kv()));
  }

  // Of an output projection.
  int64_t projection_forward() const { return in_.hidden_dropout || in_.tensor_ranks > 1 ? all() : 0; }
  // Before `then`, which needs the gradient of the product.
  int64_t projection_backward(bool defers, int64_t then) const {
    const int64_t dropped = in_.hidden_dropout && (divides_tokens() || !defers) ? stream() : 0;
    const int64_t bias = in_.hidden_dropout ? bias_partial_sums(in_.hidden_bias_scratch_elements) : 0;
    return dropped + std::max(bias, (defers ? 0 : gathered()) + then);
  }
  // A norm's output, made again for the gradient of the weights behind it.
  int64_t normed_again(bool defers) const {
    if (defers) return divides_tokens() ? if_recomputed(stream()) : 0;
    return if_recomputed(stream()) + gathered();
  }

  int64_t attention_forward() const {
    return std::max({if_recomputed(stream()) + gathered(), core_forward(), projection_forward()});
  }
  int64_t attention_backward(bool defers) const {
    return (defers ? 0 : qkv()) +
           std::max({projection_backward(defers, compute(tokens() * in_.query_width) + core_backward()),
                     normed_again(defers), bias_partial_sums(in_.qkv_bias_scratch_elements),
                     all() + norm_partial_sums()});
  }
  int64_t mlp_forward() const {
    return if_recomputed(activated()) + std::max(if_recomputed(stream()) + gathered(), projection_forward());
  }
  int64_t mlp_backward(bool defers) const {
    const int64_t d_activated = defers ? activated() : if_recomputed(activated());
    return std::max({projection_backward(defers, d_activated + bias_partial_sums(in_.up_bias_scratch_elements)),
                     normed_again(defers), all() + norm_partial_sums()});
  }
  int64_t layer_backward() const {
    if (!in_.training) return 0;
    const auto of_layer = [&](bool defers) { return std::max(attention_backward(defers), mlp_backward(defers)); };
    // Layers that are made again cannot wait with their products.
    const bool keeps_some = std::any_of(in_.chunks.begin(), in_.chunks.end(),
                                        [](const MemoryInputs::Chunk& chunk) { return chunk.kept_layers > 0; });
    const bool some_defer = in_.defers_products && keeps_some;
    const bool some_do_not = !in_.defers_products || in_.recomputed_together > 0;
    return std::max(some_defer ? of_layer(true) : 0, some_do_not ? of_layer(false) : 0);
  }
  int64_t head() const {
    if (in_.vocabulary_rows == 0) return 0;
    const int64_t statistics_of_ranks =
        in_.tensor_ranks > 1 ? Arena::footprint(main_, 3 * in_.tensor_ranks * in_.head_tokens_at_once) : 0;
    return statistics() + stream() + gathered() +
           std::max(compute(in_.head_tokens_at_once * in_.vocabulary_rows) + statistics_of_ranks,
                    in_.training ? norm_partial_sums() : 0);
  }
  int64_t embedding() const {
    if (!in_.has_embedding) return 0;
    return gathered() + Arena::footprint(DType::f32, in_.embedding_scratch_elements);
  }

  const MemoryInputs& in_;
  DType main_;
};

}  // namespace

MemoryTable memory_table(const MemoryInputs& inputs) {
  const Sizes sizes(inputs);
  const DType main = main_dtype(inputs.compute);
  MemoryTable table;
  table.deferred_bytes_per_layer = sizes.deferred_by_layer();
  table.rows.push_back({"weights", inputs.weight_bytes, std::string(name_of(inputs.compute))});
  if (inputs.training) {
    table.rows.push_back({"gradients", inputs.gradient_bytes, std::string(name_of(main))});
    const bool is_split = inputs.compute == DType::bf16;
    table.rows.push_back({"master weights", inputs.remainder_bytes,
                          is_split ? "what bf16 weights lack of fp32" : "the weights themselves"});
    table.rows.push_back({"optimizer", inputs.update_table_bytes, "scalars, and where each piece of a parameter lies"});
    table.rows.push_back({"moments", inputs.moment_bytes, "Adam, two per weight"});
  }
  int64_t slots = 0;
  for (const MemoryInputs::Chunk& chunk : inputs.chunks) slots = std::max(slots, chunk.slots);
  table.rows.push_back({"activations", sizes.activations(),
                        fmt::format("{} layers, {} micro batch{} of {} x {} tokens", inputs.layers, slots,
                                    slots == 1 ? "" : "es", inputs.batch, inputs.length)});
  if (inputs.defers_products) {
    table.rows.push_back({"deferred products", sizes.deferred(), "what later weight gradients read"});
  }
  if (inputs.reduction_bytes > 0) {
    table.rows.push_back({"reduction", inputs.reduction_bytes, "gradients on their way"});
  }
  table.rows.push_back({"scratch", sizes.scratch(), "the largest operation's"});
  table.rows.push_back({"batch", sizes.batch(), "token ids, positions, weights, losses, scalars"});
  table.rows.push_back({kOutsideArenas, inputs.outside_bytes, "program and libraries"});
  return table;
}

int64_t MemoryTable::total() const {
  int64_t sum = 0;
  for (const MemoryRow& row : rows) sum += row.bytes;
  return sum;
}

int64_t MemoryTable::bytes_of(const std::string& arena) const {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const MemoryRow& r) { return r.arena == arena; });
  return row == rows.end() ? 0 : row->bytes;
}

std::string MemoryTable::to_text() const {
  std::string text = fmt::format("  {:<16} {:>12}  {}\n", "memory", "size", "holds");
  for (const MemoryRow& row : rows)
    text += fmt::format("  {:<16} {:>12}  {}\n", row.arena, format_bytes(row.bytes), row.holds);
  return text + fmt::format("  {:<16} {:>12}\n", "total", format_bytes(total()));
}

std::string format_bytes(int64_t bytes) {
  constexpr double kKiB = 1024.0;
  const auto value = static_cast<double>(bytes);
  if (value >= kKiB * kKiB * kKiB) return fmt::format("{:.2f} GiB", value / (kKiB * kKiB * kKiB));
  if (value >= kKiB * kKiB) return fmt::format("{:.1f} MiB", value / (kKiB * kKiB));
  return fmt::format("{:.1f} KiB", value / kKiB);
}

}  // namespace megalith::cost
