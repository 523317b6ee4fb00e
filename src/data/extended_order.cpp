#include "data/extended_order.h"

#include <utility>

#include "core/error.h"

namespace megalith::data {

ExtendedOrder::ExtendedOrder(Build build, uint32_t seed) : build_(std::move(build)), seed_(seed), first_(build_(seed)) {
  MEGALITH_CHECK(block_size() > 0, "an order needs at least one sample");
}

ExtendedOrder::Place ExtendedOrder::locate(int64_t sample) const {
  MEGALITH_CHECK(sample >= 0, "sample {}", sample);
  const int64_t block = sample / block_size();
  if (block == 0) return {first_, sample};
  const std::lock_guard lock(mutex_);
  if (later_block_ != block) {
    later_.reset();  // before the next one is built: two at once may not fit
    later_ = build_(seed_ + static_cast<uint32_t>(block));
    later_block_ = block;
  }
  return {later_, sample % block_size()};
}

}  // namespace megalith::data
