#pragma once

#include <fmt/format.h>

#include "parallel/layout_check.h"
#include "parallel/placement/parameter_table.h"

namespace megalith::parallel::testing {

// The shape of a transformer, as far as its parameters and their cuts go.
struct Transformer {
  int64_t layers = 2;
  int64_t hidden = 8;
  int64_t ffn = 32;
  int64_t heads = 4;
  int64_t kv_heads = 4;
  int64_t head_dim = 2;
  int64_t vocabulary = 64;
  int64_t positions = 0;  // learned; 0: none
  bool is_gated = false;
  bool has_bias = true;
  bool has_tied_embeddings = true;
};

inline Transformer gpt3_175b(int64_t vocabulary = 51200) {
  return {.layers = 96,
          .hidden = 12288,
          .ffn = 49152,
          .heads = 96,
          .kv_heads = 96,
          .head_dim = 128,
          .vocabulary = vocabulary,
          .positions = 2048};
}

// 22B and 45B of Azure's samples differ in their layers.
inline Transformer gpt3_of_width_8192(int64_t layers) {
  return {.layers = layers,
          .hidden = 8192,
          .ffn = 32768,
          .heads = 64,
          .kv_heads = 64,
          .head_dim = 128,
          .vocabulary = 50304,
          .positions = 2048};
}

inline Transformer llama3_405b() {
  return {.layers = 126,
          .hidden = 16384,
          .ffn = 53248,
          .heads = 128,
          .kv_heads = 8,
          .head_dim = 128,
          .vocabulary = 128256,
          .is_gated = true,
          .has_bias = false,
          .has_tied_embeddings = false};
}

class TransformerTable {
 public:
  explicit TransformerTable(const Transformer& shape) : shape_(shape) {
    matrix("embedding.tokens", shape.vocabulary, shape.hidden, {kRows}, shape.has_tied_embeddings);
    if (shape.positions > 0) matrix("embedding.positions", shape.positions, shape.hidden, {}, false);
    for (int64_t layer = 0; layer < shape.layers; ++layer) add_layer(fmt::format("layers.{}.", layer));
    norm("final_norm");
    if (!shape.has_tied_embeddings) matrix("head", shape.vocabulary, shape.hidden, {kRows}, true);
  }

  ParameterTable take() { return std::move(table_); }

 private:
  inline static const Cut kRows{.dimension = 0, .axes = {Axis::tp}};
  inline static const Cut kColumns{.dimension = 1, .axes = {Axis::tp}};

  void matrix(const std::string& name, int64_t rows, int64_t columns, std::vector<Cut> cuts, bool in_product) {
    table_.add({.name = name + ".weight",
                .shape = {rows, columns},
                .cuts = std::move(cuts),
                .initial = Initial::normal,
                .std = 0.5,
                .weight_decay = true,
                .gradient_by_product = in_product});
  }

  void norm(const std::string& name) {
    table_.add({.name = name + ".weight", .shape = {shape_.hidden}, .initial = Initial::ones});
    if (shape_.has_bias) table_.add({.name = name + ".bias", .shape = {shape_.hidden}});
  }

  void column_parallel(const std::string& name, int64_t rows, const std::vector<int64_t>& blocks, int64_t unit) {
    table_.add({.name = name + ".weight",
                .shape = {rows, shape_.hidden},
                .cuts = {kRows},
                .blocks = blocks,
                .cut_unit = unit,
                .initial = Initial::normal,
                .std = 0.25,
                .weight_decay = true,
                .gradient_by_product = true});
    if (shape_.has_bias)
      table_.add({.name = name + ".bias", .shape = {rows}, .cuts = {kRows}, .blocks = blocks, .cut_unit = unit});
  }

  void row_parallel(const std::string& name, int64_t columns) {
    matrix(name, shape_.hidden, columns, {kColumns}, true);
    if (shape_.has_bias) table_.add({.name = name + ".bias", .shape = {shape_.hidden}});
  }

  void add_layer(const std::string& layer) {
    const int64_t query = shape_.heads * shape_.head_dim;
    const int64_t kv = shape_.kv_heads * shape_.head_dim;
    norm(layer + "attention.norm");
    column_parallel(layer + "attention.qkv", query + 2 * kv, {query, kv, kv}, shape_.head_dim);
    row_parallel(layer + "attention.out", query);
    norm(layer + "mlp.norm");
    if (shape_.is_gated) {
      column_parallel(layer + "mlp.gate_up", 2 * shape_.ffn, {shape_.ffn, shape_.ffn}, 1);
    } else {
      column_parallel(layer + "mlp.up", shape_.ffn, {}, 1);
    }
    row_parallel(layer + "mlp.down", shape_.ffn);
  }

  Transformer shape_;
  ParameterTable table_;
};

inline ParameterTable table_of(const Transformer& shape) {
  return TransformerTable(shape).take();
}

inline LayoutDemands demands_of(const Transformer& shape, const Layout& layout, int64_t micro_batches) {
  return {.ranks = layout.world(),
          .layers = shape.layers,
          .heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .ffn = shape.ffn,
          .padded_vocabulary = shape.vocabulary,
          .length = 2048,
          .global_batch = micro_batches * layout.data};
}

}  // namespace megalith::parallel::testing
