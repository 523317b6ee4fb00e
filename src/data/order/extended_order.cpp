#include "data/order/extended_order.h"

#include <utility>

#include "core/error.h"

namespace megalith::data {

ExtendedOrder::ExtendedOrder(Build build, uint32_t seed)
    : build_(std::move(build)), seed_(seed), block_size_(0), first_(build_(seed, false)) {
  block_size_ = first_->size();
  MEGALITH_CHECK(block_size_ > 0, "an order needs at least one sample");
}

ExtendedOrder::BlockSample ExtendedOrder::locate(int64_t sample) const {
  MEGALITH_CHECK(sample >= 0, "sample {}", sample);
  const int64_t block = sample / block_size_;
  const std::lock_guard lock(mutex_);
  if (block == 0) return {first_, sample};
  if (later_block_ != block) {
    later_.reset();  // before the next one is built: two at once may not fit
    later_block_ = 0;
    later_ = build_(seed_ + static_cast<uint32_t>(block), false);
    later_block_ = block;
  }
  return {later_, sample % block_size_};
}

void ExtendedOrder::rebuild(int64_t sample, const std::shared_ptr<const GptIndex>& damaged) const {
  const int64_t block = sample / block_size_;
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const GptIndex>& place = block == 0 ? first_ : later_;
  if (place != damaged || (block != 0 && block != later_block_)) return;
  place = build_(seed_ + static_cast<uint32_t>(block), true);
  MEGALITH_CHECK(place->size() == block_size_, "{} samples where {} were", place->size(), block_size_);
}

}  // namespace megalith::data
