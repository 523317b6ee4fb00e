#include "parallel/layer_split.h"

namespace megalith::parallel {

namespace {

// What is left for the stages whose size is not given, in layers (or what counts as one).
struct Remainder {
  int64_t layers = 0;
  int64_t chunks = 0;
};

Remainder remainder_of(const Layout& layout, int64_t layers) {
  const LayerSplit& split = layout.split;
  const int64_t given = (split.first_stage > 0 ? 1 : 0) + (split.last_stage > 0 ? 1 : 0);
  const int64_t counted = (split.counts_embedding ? 1 : 0) + (split.counts_loss ? 1 : 0);
  return {.layers = layers - split.first_stage - split.last_stage + counted,
          .chunks = (layout.pipeline - given) * layout.chunks};
}

// "128 layers, embedding and loss counted,"
std::string describe(const Remainder& rest, const LayerSplit& split) {
  if (split.first_stage + split.last_stage > 0) return fmt::format("{} layers that are left", rest.layers);
  if (split.counts_embedding && split.counts_loss)
    return fmt::format("{} layers, embedding and loss counted,", rest.layers);
  if (split.counts_embedding) return fmt::format("{} layers, embedding counted,", rest.layers);
  if (split.counts_loss) return fmt::format("{} layers, loss counted,", rest.layers);
  return fmt::format("{} layers", rest.layers);
}

std::string remainder_problem(const Layout& layout, int64_t layers) {
  const Remainder rest = remainder_of(layout, layers);
  const int64_t given = layout.split.first_stage + layout.split.last_stage;
  if (rest.chunks == 0) {
    if (rest.layers == 0) return "";
    return fmt::format("the stages' sizes add up to {} layers, the model has {}", given, layers);
  }
  if (given > 0 && rest.layers < rest.chunks)
    return fmt::format("{} of {} layers on the first and last stages leave too few for {} other chunks", given, layers,
                       rest.chunks);
  if (rest.layers % rest.chunks == 0) return "";
  return fmt::format(
      "{} cannot be cut into {} equal chunks (pipeline {} x {} chunks): give sizes for the first or last stage, or "
      "count "
      "embedding or loss as a layer",
      describe(rest, layout.split), rest.chunks, layout.pipeline, layout.chunks);
}

}  // namespace

std::string layer_split_problem(const Layout& layout, int64_t layers) {
  const LayerSplit& split = layout.split;
  const bool sizes_given = split.first_stage > 0 || split.last_stage > 0;
  if (sizes_given && (split.counts_embedding || split.counts_loss))
    return "stage sizes and counting embedding or loss as layers exclude each other";
  if (sizes_given && layout.pipeline == 1) return "sizes of the first or last stage need more than one stage";
  for (const int64_t size : {split.first_stage, split.last_stage}) {
    if (size % layout.chunks != 0)
      return fmt::format("a stage of {} layers cannot be cut into {} equal chunks", size, layout.chunks);
  }
  return remainder_problem(layout, layers);
}

std::vector<int64_t> layers_per_virtual_stage(const Layout& layout, int64_t layers) {
  const LayerSplit& split = layout.split;
  const Remainder rest = remainder_of(layout, layers);
  const int64_t usual = rest.chunks == 0 ? 0 : div_exact(rest.layers, rest.chunks);
  std::vector<int64_t> sizes;
  for (int64_t number = 0; number < layout.virtual_stages(); ++number) {
    const int64_t stage = number % layout.pipeline;
    const int64_t given = stage == 0 ? split.first_stage : stage == layout.pipeline - 1 ? split.last_stage : 0;
    sizes.push_back(given > 0 ? div_exact(given, layout.chunks) : usual);
  }
  if (split.counts_embedding) --sizes.front();
  if (split.counts_loss) --sizes.back();
  return sizes;
}

Interval layers_of(const Layout& layout, int64_t layers, const Home& home) {
  const std::vector<int64_t> sizes = layers_per_virtual_stage(layout, layers);
  const auto number = static_cast<size_t>(home.chunk * layout.pipeline + home.stage);
  int64_t begin = 0;
  for (size_t before = 0; before < number; ++before) begin += sizes[before];
  return {begin, begin + sizes[number]};
}

Home home_of_layer(const Layout& layout, int64_t layers, int64_t layer) {
  MEGALITH_CHECK(layer >= 0 && layer < layers, "a model of {} layers has no layer {}", layers, layer);
  const std::vector<int64_t> sizes = layers_per_virtual_stage(layout, layers);
  int64_t number = 0;
  for (int64_t end = sizes[0]; end <= layer; end += sizes[static_cast<size_t>(number)]) ++number;
  return {.stage = number % layout.pipeline, .chunk = number / layout.pipeline};
}

}  // namespace megalith::parallel
