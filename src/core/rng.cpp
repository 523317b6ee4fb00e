#include "core/rng.h"

#include <cmath>
#include <numbers>

namespace megalith {

double normal_at(uint64_t key, uint64_t index) {
  const uint64_t pair = index / 2;
  const std::array<uint32_t, 4> words =
      philox(key, {static_cast<uint32_t>(pair), static_cast<uint32_t>(pair >> 32), 0, 0});
  const double u1 = (static_cast<double>((uint64_t{words[0]} << 20) | (words[1] >> 12)) + 0.5) * 0x1p-52;
  const double u2 = static_cast<double>((uint64_t{words[2]} << 20) | (words[3] >> 12)) * 0x1p-52;
  const double radius = std::sqrt(-2.0 * std::log(u1));
  const double angle = 2.0 * std::numbers::pi * u2;
  return radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

}  // namespace megalith
