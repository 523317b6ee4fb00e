#include "engine/arenas.h"

namespace megalith::engine {

Arenas::Arenas(Device device, const ArenaSizes& sizes)
    : weights("weights", device, sizes.weights),
      gradients("gradients", device, sizes.gradients),
      masters("master weights", device, sizes.masters),
      moments("moments", device, sizes.moments),
      optimizer("optimizer", device, sizes.optimizer),
      activations("activations", device, sizes.activations),
      reduction("reduction", device, sizes.reduction),
      scratch("scratch", device, sizes.scratch),
      batch("batch", device, sizes.batch),
      fp8("fp8", device, sizes.fp8) {}

Arenas::Arenas(Device device, Shadow shadow)
    : weights("weights", device, shadow),
      gradients("gradients", device, shadow),
      masters("master weights", device, shadow),
      moments("moments", device, shadow),
      optimizer("optimizer", device, shadow),
      activations("activations", device, shadow),
      reduction("reduction", device, shadow),
      scratch("scratch", device, shadow),
      batch("batch", device, shadow),
      fp8("fp8", device, shadow) {}

}  // namespace megalith::engine
