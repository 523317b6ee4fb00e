#include "model/parameters.h"

#include <cmath>

namespace megalith::model {

using parallel::Axis;
using parallel::Cut;
using parallel::Initial;
using parallel::ParameterTable;

std::string layer_name(int64_t layer, std::string_view rest) {
  return fmt::format("layers.{}.{}", layer, rest);
}

std::array<std::string, 4> linear_names(const ModelConfig& config, int64_t layer) {
  return {layer_name(layer, "attention.qkv"), layer_name(layer, "attention.out"),
          layer_name(layer, config.swiglu ? "mlp.gate_up" : "mlp.up"), layer_name(layer, "mlp.down")};
}

namespace {

const Cut kRows{.dimension = 0, .axes = {Axis::tp}};
const Cut kColumns{.dimension = 1, .axes = {Axis::tp}};

class TableBuilder {
 public:
  explicit TableBuilder(const ModelConfig& config) : config_(config) {}

  void add_matrix(const std::string& name, int64_t rows, int64_t cols, std::vector<Cut> cuts, double std,
                  bool in_product) {
    table_.add({.name = name + ".weight",
                .shape = {rows, cols},
                .cuts = std::move(cuts),
                .initial = Initial::normal,
                .std = std,
                .weight_decay = true,
                .gradient_by_product = in_product});
  }

  void add_norm(const std::string& name) {
    table_.add({.name = name + ".weight", .shape = {config_.hidden}, .initial = Initial::ones});
    if (config_.has_norm_bias()) table_.add({.name = name + ".bias", .shape = {config_.hidden}});
  }

  // Its rows are divided over tensor-parallel ranks, and so is its bias; `cut_unit` rows stay together.
  void add_column_parallel(const std::string& name, int64_t out, int64_t in, const std::vector<int64_t>& blocks,
                           int64_t cut_unit = 1) {
    table_.add({.name = name + ".weight",
                .shape = {out, in},
                .cuts = {kRows},
                .blocks = blocks,
                .cut_unit = cut_unit,
                .initial = Initial::normal,
                .std = config_.init_std,
                .weight_decay = true,
                .gradient_by_product = true});
    if (!config_.bias) return;
    table_.add({.name = name + ".bias", .shape = {out}, .cuts = {kRows}, .blocks = blocks, .cut_unit = cut_unit});
  }

  // Its columns are divided; the bias is whole on every rank.
  void add_row_parallel(const std::string& name, int64_t out, int64_t in) {
    add_matrix(name, out, in, {kColumns}, config_.init_std / std::sqrt(2.0 * static_cast<double>(config_.layers)),
               true);
    if (config_.bias) table_.add({.name = name + ".bias", .shape = {out}});
  }

  ParameterTable finish() { return std::move(table_); }

 private:
  const ModelConfig& config_;
  ParameterTable table_;
};

}  // namespace

ParameterTable logical_parameters(const ModelConfig& c) {
  TableBuilder builder(c);
  builder.add_matrix("embedding.tokens", c.padded_vocabulary, c.hidden, {kRows}, c.init_std, c.tied_embeddings);
  if (c.learned_positions) builder.add_matrix("embedding.positions", c.max_positions, c.hidden, {}, c.init_std, false);
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    builder.add_norm(layer_name(layer, "attention.norm"));
    builder.add_column_parallel(layer_name(layer, "attention.qkv"), c.qkv_width(), c.hidden,
                                {c.query_width(), c.kv_width(), c.kv_width()}, c.head_dim);
    builder.add_row_parallel(layer_name(layer, "attention.out"), c.hidden, c.query_width());
    builder.add_norm(layer_name(layer, "mlp.norm"));
    if (c.swiglu) {
      builder.add_column_parallel(layer_name(layer, "mlp.gate_up"), 2 * c.ffn, c.hidden, {c.ffn, c.ffn});
    } else {
      builder.add_column_parallel(layer_name(layer, "mlp.up"), c.ffn, c.hidden, {});
    }
    builder.add_row_parallel(layer_name(layer, "mlp.down"), c.hidden, c.ffn);
  }
  builder.add_norm("final_norm");
  if (!c.tied_embeddings) builder.add_matrix("head", c.padded_vocabulary, c.hidden, {kRows}, c.init_std, true);
  return builder.finish();
}

}  // namespace megalith::model
