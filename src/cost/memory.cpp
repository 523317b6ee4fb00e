#include "cost/memory.h"

#include <algorithm>

#include "core/arena.h"

namespace megalith::cost {

namespace {

class Sizes {
 public:
  explicit Sizes(const MemoryInputs& inputs) : in_(inputs), main_(main_dtype(inputs.compute)) {}

  int64_t parameters(DType dtype, int64_t shards) const {
    int64_t bytes = 0;
    for (const int64_t elements : in_.parameter_elements) bytes += Arena::footprint(dtype, ceil_div(elements, shards));
    return bytes;
  }

  int64_t activations() const {
    const int64_t blocks_kept = in_.keeps_blocks ? in_.layers : std::min<int64_t>(1, in_.layers);
    const int64_t kept = blocks_kept * saved_by_block() + (in_.layers + 1) * stream();
    return 2 * Arena::footprint(DType::f32, in_.rope_elements) + in_.micro_batches_alive * kept + stream();
  }

  int64_t scratch() const {
    return std::max({attention_forward(), attention_backward(), mlp_forward(), mlp_backward(), head(),
                     Arena::footprint(DType::i32, in_.embedding_scratch_elements)});
  }

  int64_t optimizer() const {
    return round_up(in_.update_tiles * in_.update_tile_bytes, Arena::kAlignment) +
           Arena::footprint(DType::f64, in_.update_tiles) + Arena::kAlignment;
  }

  int64_t batch() const {
    return 4 * Arena::footprint(DType::i32, tokens()) + 2 * Arena::footprint(main_, tokens()) +
           Arena::footprint(DType::i64, in_.batch) + Arena::footprint(DType::i32, in_.document_bounds) +
           Arena::kAlignment;
  }

 private:
  int64_t tokens() const { return in_.batch * in_.length; }
  int64_t compute(int64_t elements) const { return Arena::footprint(in_.compute, elements); }
  int64_t stream() const { return compute(in_.norm_tokens * in_.hidden); }
  int64_t statistics() const { return (in_.norm_has_mean ? 2 : 1) * Arena::footprint(main_, in_.norm_tokens); }
  int64_t if_recomputed(int64_t bytes) const { return in_.keeps_recomputable || !in_.keeps_blocks ? 0 : bytes; }
  int64_t activated() const { return compute(tokens() * in_.ffn); }

  int64_t saved_by_block() const {
    const bool keeps = in_.keeps_recomputable || !in_.keeps_blocks;
    const int64_t attention = statistics() + (keeps ? stream() : 0) + compute(tokens() * in_.qkv_width) +
                              compute(tokens() * in_.query_width) + Arena::footprint(main_, in_.heads * tokens());
    const int64_t mlp = statistics() + compute(tokens() * in_.up_width) + (keeps ? stream() + activated() : 0);
    return attention + stream() + mlp;
  }

  int64_t attention_blocks() const { return Arena::footprint(main_, in_.attention_scratch_elements); }
  int64_t norm_partial_sums() const { return Arena::footprint(main_, in_.norm_scratch_elements); }

  int64_t bias_partial_sums(int64_t elements) const { return Arena::footprint(main_, elements); }
  int64_t projected() const { return in_.hidden_dropout ? stream() : 0; }
  // The output projections' bias gradient is made apart only where dropout comes between.
  int64_t output_bias() const { return in_.hidden_dropout ? bias_partial_sums(in_.hidden_bias_scratch_elements) : 0; }

  int64_t attention_forward() const { return if_recomputed(stream()) + attention_blocks() + projected(); }
  int64_t attention_backward() const {
    if (!in_.training) return 0;
    const int64_t until_qkv =
        projected() + std::max(output_bias(), compute(tokens() * in_.query_width) + attention_blocks());
    const int64_t after_qkv = if_recomputed(stream()) + std::max(bias_partial_sums(in_.qkv_bias_scratch_elements),
                                                                 stream() + norm_partial_sums());
    return compute(tokens() * in_.qkv_width) + std::max(until_qkv, after_qkv);
  }
  int64_t mlp_forward() const { return if_recomputed(activated()) + std::max(if_recomputed(stream()), projected()); }
  int64_t mlp_backward() const {
    if (!in_.training) return 0;
    const int64_t until_up = projected() + std::max(output_bias(), if_recomputed(activated()) +
                                                                       bias_partial_sums(in_.up_bias_scratch_elements));
    return std::max(until_up, if_recomputed(stream()) + stream() + norm_partial_sums());
  }
  int64_t head() const {
    if (in_.vocabulary_rows == 0) return 0;
    return statistics() + stream() + compute(in_.head_tokens_at_once * in_.vocabulary_rows) +
           (in_.training ? norm_partial_sums() : 0);
  }

  const MemoryInputs& in_;
  DType main_;
};

}  // namespace

MemoryTable memory_table(const MemoryInputs& inputs) {
  const Sizes sizes(inputs);
  const DType main = main_dtype(inputs.compute);
  MemoryTable table;
  table.rows.push_back({"weights", sizes.parameters(inputs.compute, 1), std::string(name_of(inputs.compute))});
  if (inputs.training) {
    table.rows.push_back({"gradients", sizes.parameters(main, 1), std::string(name_of(main))});
    const bool is_split = inputs.compute == DType::bf16;
    const int64_t remainder = is_split ? sizes.parameters(DType::i16, inputs.optimizer_shards) : 0;
    table.rows.push_back(
        {"master weights", remainder, is_split ? "what bf16 weights lack of fp32" : "the weights themselves"});
    table.rows.push_back({"optimizer", sizes.optimizer(), "scalars, and where each piece of a parameter lies"});
    table.rows.push_back({"moments", 2 * sizes.parameters(main, inputs.optimizer_shards), "Adam, two per weight"});
  }
  table.rows.push_back(
      {"activations", sizes.activations(),
       fmt::format("{} layers, {} micro batch{} of {} x {} tokens", inputs.layers, inputs.micro_batches_alive,
                   inputs.micro_batches_alive == 1 ? "" : "es", inputs.batch, inputs.length)});
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
  MEGALITH_CHECK(row != rows.end(), "the memory table has no row '{}'", arena);
  return row->bytes;
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
