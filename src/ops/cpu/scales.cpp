#include "ops/operands/scales.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace megalith::ops::cpu {

namespace {

// The largest power of two with power * amax <= limit; both it and its inverse are normal numbers.
float scale_for(float amax, float limit) {
  if (amax == 0.0F) return 1.0F;
  int amax_exponent = 0;
  int limit_exponent = 0;
  const float amax_fraction = std::frexp(amax, &amax_exponent);
  const float limit_fraction = std::frexp(limit, &limit_exponent);
  const int exponent = limit_exponent - amax_exponent - (amax_fraction > limit_fraction ? 1 : 0);
  constexpr int kLargestExponent = 126;
  return std::ldexp(1.0F, std::clamp(exponent, -kLargestExponent, kLargestExponent));
}

// The amax that the scale follows from, once the history has taken the newest one.
float remember(const UpdateScales& args, int64_t slot, float newest) {
  if (!args.scales.history) return newest;
  float* first = args.scales.history.row<float>(slot);
  float* last = first + args.scales.history.cols();
  if (args.remember == Remember::as_newest) std::copy_backward(first, last - 1, last);
  if (args.remember != Remember::not_at_all) *first = newest;
  return args.most_recent ? *first : *std::max_element(first, last);
}

}  // namespace

void inspect_amax(Stream&, const InspectAmax& args) {
  const Scales& scales = args.scales;
  *args.saturations = 0.0;
  for (int64_t i = 0; i < scales.amax.elements(); ++i) {
    const auto amax = std::bit_cast<float>(scales.amax.as<int32_t>()[i]);
    const bool is_beyond = amax * scales.scale.as<float>()[i] > scales.largest.as<float>()[i];
    const Finding finding = !std::isfinite(amax) ? Finding::not_finite : is_beyond ? Finding::saturated : Finding::none;
    args.findings.as<int32_t>()[i] = static_cast<int32_t>(finding);
    if (finding == Finding::saturated) *args.saturations += 1.0;
    if (finding == Finding::not_finite) *args.squared_norm = std::numeric_limits<double>::quiet_NaN();
  }
}

void update_scales(Stream&, const UpdateScales& args) {
  const Scales& scales = args.scales;
  const bool was_skipped = args.update != nullptr && args.update->skip != 0;
  for (int64_t i = 0; i < scales.amax.elements(); ++i) {
    int32_t& bits = scales.amax.as<int32_t>()[i];
    const auto amax = std::bit_cast<float>(bits);
    const bool is_finite = std::isfinite(amax);
    float& scale = scales.scale.as<float>()[i];
    bits = 0;
    if (was_skipped || (!is_finite && scales.history)) continue;
    const float limit = std::ldexp(scales.largest.as<float>()[i], -args.margin);
    scale = is_finite ? scale_for(remember(args, i, amax), limit) : std::numeric_limits<float>::quiet_NaN();
    *scales.inverse.row<float>(i) = 1.0F / scale;
  }
}

}  // namespace megalith::ops::cpu
