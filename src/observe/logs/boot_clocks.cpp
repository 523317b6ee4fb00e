#include "observe/logs/boot_clocks.h"

#include <algorithm>
#include <cstdlib>

namespace megalith::observe {

namespace {
constexpr int64_t kSlack = 500'000;  // microseconds; less is a clock that is being steered
}

BootClocks::Boot& BootClocks::boot_of(const Reading& reading) {
  if (last_ < boots_.size() && boots_[last_].id == reading.boot) return boots_[last_];
  const auto known = std::find_if(boots_.begin(), boots_.end(), [&](const Boot& b) { return b.id == reading.boot; });
  last_ = static_cast<size_t>(known - boots_.begin());
  if (known != boots_.end()) return *known;
  const int64_t offset = reading.wall - reading.monotonic;
  const bool behind = reading.generation > newest_generation_ && newest_generation_ >= 0 && reading.wall < newest_;
  if (behind) ++steps_;
  boots_.push_back({.id = std::string(reading.boot),
                    .offset = behind ? newest_ - reading.monotonic : offset,
                    .wall_offset = offset});
  return boots_.back();
}

int64_t BootClocks::align(const Reading& reading) {
  Boot& boot = boot_of(reading);
  const int64_t wall_offset = reading.wall - reading.monotonic;
  if (std::abs(wall_offset - boot.wall_offset) > kSlack) ++steps_;
  boot.wall_offset = wall_offset;
  const int64_t time = reading.monotonic + boot.offset;
  if (time > newest_) newest_ = time;
  newest_generation_ = std::max(newest_generation_, reading.generation);
  return time;
}

}  // namespace megalith::observe
