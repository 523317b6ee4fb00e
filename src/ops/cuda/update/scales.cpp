#include "ops/operands/scales.h"

#include "ops/cuda/launch.h"
#include "ops/cuda/launch_args.h"
#include "ops/cuda/update/scales_launch.h"

namespace megalith::ops::cuda {

namespace {

ScaleSlots slots_of(const Scales& scales) {
  return {.count = scales.amax.elements(),
          .amax = reinterpret_cast<uint32_t*>(scales.amax.as<int32_t>()),
          .largest = scales.largest.as<float>(),
          .scale = scales.scale.as<float>(),
          .inverse = scales.inverse.as<float>(),
          .inverse_stride = scales.inverse.row_stride};
}

constexpr int32_t code_of(Finding finding) {
  return static_cast<int32_t>(finding);
}

}  // namespace

void inspect_amax(Stream& stream, const InspectAmax& args) {
  launch_inspect_amax({.slots = slots_of(args.scales),
                       .codes = {.none = code_of(Finding::none),
                                 .saturated = code_of(Finding::saturated),
                                 .not_finite = code_of(Finding::not_finite)},
                       .findings = args.findings.as<int32_t>(),
                       .squared_norm = args.squared_norm,
                       .saturations = args.saturations},
                      stream.native());
  check_launch("inspect_amax", args.scales.amax);
}

void update_scales(Stream& stream, const UpdateScales& args) {
  launch_update_scales({.slots = slots_of(args.scales),
                        .history = matrix_of(args.scales.history),
                        .length = args.scales.history ? args.scales.history.cols() : 0,
                        .skip = args.update == nullptr ? nullptr : &args.update->skip,
                        .margin = args.margin,
                        .most_recent = args.most_recent,
                        .shifts = args.remember == Remember::as_newest,
                        .takes_newest = args.remember != Remember::not_at_all},
                       stream.native());
  check_launch("update_scales", args.scales.amax);
}

}  // namespace megalith::ops::cuda
