#include "parallel/layout.h"

#include <charconv>
#include <optional>

#include "parallel/layer_split.h"
#include "parallel/placement/cuts.h"

namespace megalith::parallel {

namespace {

std::string describe(const LayerSplit& split) {
  std::string text;
  if (split.first_stage > 0) text += fmt::format(", {} layers on the first stage", split.first_stage);
  if (split.last_stage > 0) text += fmt::format(", {} layers on the last stage", split.last_stage);
  if (split.counts_embedding && split.counts_loss) return text + ", embedding and loss counted as layers";
  if (split.counts_embedding) text += ", embedding counted as a layer";
  if (split.counts_loss) text += ", loss counted as a layer";
  return text;
}

}  // namespace

std::optional<int64_t> layer_of(const ParameterSpec& spec) {
  constexpr std::string_view kLayers = "layers.";
  if (!spec.name.starts_with(kLayers)) return std::nullopt;
  int64_t layer = 0;
  std::from_chars(spec.name.data() + kLayers.size(), spec.name.data() + spec.name.size(), layer);
  return layer;
}

std::string to_string(const Layout& layout) {
  const std::string stages = layout.chunks == 1
                                 ? fmt::format("pipeline {}", layout.pipeline)
                                 : fmt::format("pipeline {} ({} chunks)", layout.pipeline, layout.chunks);
  return fmt::format("tensor {} x {} x context {} x data {}{}", layout.tensor, stages, layout.context, layout.data,
                     describe(layout.split));
}

bool is_token_embedding(const ParameterSpec& spec) {
  return spec.name == "embedding.tokens.weight";
}

Shape local_shape(const ParameterSpec& spec, int64_t tensor) {
  const std::vector<Piece> pieces = pieces_of(spec, {.ranks = tensor});
  int64_t rows = 0;
  for (const Piece& piece : pieces) rows += piece.box.rows.size();
  if (spec.shape.rank() == 1) return {rows};
  return {rows, pieces.front().box.columns.size()};
}

std::vector<Home> homes_of(const ParameterSpec& spec, const Layout& layout, int64_t layers, bool tied_embeddings) {
  const Home first{};
  const Home last{layout.pipeline - 1, layout.chunks - 1};
  if (const auto layer = layer_of(spec)) return {home_of_layer(layout, layers, *layer)};
  if (!spec.name.starts_with("embedding.")) return {last};
  const bool twice = tied_embeddings && is_token_embedding(spec) && layout.pipeline > 1;
  return twice ? std::vector<Home>{first, last} : std::vector<Home>{first};
}

}  // namespace megalith::parallel
