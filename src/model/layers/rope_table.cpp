#include <cmath>
#include <numbers>
#include <vector>

#include "model/layers/attention.h"

namespace megalith::model {

namespace {

// Llama-3.1's stretching of RoPE to longer contexts: long wavelengths are divided by the factor, short ones kept, those
// between blended (megatron.core rotary embedding, "llama3" scaling).
double scaled_frequency(double frequency, const config::RopeScaling& scaling) {
  if (scaling.factor == 1.0) return frequency;
  const auto old_context = static_cast<double>(scaling.old_context_len);
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  if (wavelength < old_context / scaling.high_freq_factor) return frequency;
  if (wavelength > old_context / scaling.low_freq_factor) return frequency / scaling.factor;
  const double blend =
      (old_context / wavelength - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1.0 - blend) * frequency / scaling.factor + blend * frequency;
}

}  // namespace

RopeTable make_rope_table(const ModelConfig& config, Stream& stream, Arena& arena) {
  if (config.learned_positions) return {};
  const int64_t pairs = config.head_dim / 2;
  const Shape shape{config.max_positions, pairs};
  const RopeTable table{.cos = arena.allocate("rope.cos", DType::f32, shape),
                        .sin = arena.allocate("rope.sin", DType::f32, shape)};
  if (stream.is_shadow()) return table;
  std::vector<float> cosines(static_cast<size_t>(shape.elements()));
  std::vector<float> sines(cosines.size());
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const double exponent = 2.0 * static_cast<double>(pair) / static_cast<double>(config.head_dim);
    const double frequency = scaled_frequency(std::pow(config.rotary_base, -exponent), config.rope_scaling);
    for (int64_t position = 0; position < config.max_positions; ++position) {
      const double angle = static_cast<double>(position) * frequency;
      const auto element = static_cast<size_t>(position * pairs + pair);
      cosines[element] = static_cast<float>(std::cos(angle));
      sines[element] = static_cast<float>(std::sin(angle));
    }
  }
  copy(stream, Tensor(cosines.data(), DType::f32, shape), table.cos);
  copy(stream, Tensor(sines.data(), DType::f32, shape), table.sin);
  stream.wait();
  return table;
}

}  // namespace megalith::model
