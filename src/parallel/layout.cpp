#include "parallel/layout.h"

#include <algorithm>
#include <charconv>

namespace megalith::parallel {

Shape local_shape(const ParameterSpec& spec, int64_t tensor) {
  int64_t divisor[2] = {1, 1};
  for (const Cut& cut : spec.cuts) {
    if (std::find(cut.axes.begin(), cut.axes.end(), Axis::tp) != cut.axes.end()) divisor[cut.dimension] = tensor;
  }
  if (spec.shape.rank() == 1) return {ceil_div(spec.shape[0], divisor[0])};
  return {ceil_div(spec.shape[0], divisor[0]), ceil_div(spec.shape[1], divisor[1])};
}

std::vector<int64_t> stages_of(const ParameterSpec& spec, const Layout& layout, int64_t layers, bool tied_embeddings) {
  const int64_t last = layout.pipeline - 1;
  constexpr std::string_view kLayers = "layers.";
  if (spec.name.starts_with(kLayers)) {
    int64_t layer = 0;
    std::from_chars(spec.name.data() + kLayers.size(), spec.name.data() + spec.name.size(), layer);
    const int64_t layers_per_chunk = div_exact(layers, layout.pipeline * layout.chunks);
    return {layer / layers_per_chunk % layout.pipeline};
  }
  if (!spec.name.starts_with("embedding.")) return {last};
  const bool twice = tied_embeddings && spec.name == "embedding.tokens.weight" && last > 0;
  return twice ? std::vector<int64_t>{0, last} : std::vector<int64_t>{0};
}

int64_t micro_batches_alive(const Layout& layout, int64_t stage, int64_t micro_batches) {
  if (layout.chunks == 1) return std::min(micro_batches, layout.pipeline - stage);
  // Interleaved 1F1B warms up with 2 (pp - stage - 1) + (chunks - 1) pp chunks and holds one more.
  const int64_t chunks_alive = 2 * (layout.pipeline - stage - 1) + (layout.chunks - 1) * layout.pipeline + 1;
  return std::min(micro_batches, ceil_div(chunks_alive, layout.chunks));
}

}  // namespace megalith::parallel
