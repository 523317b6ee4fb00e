#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::observe {

// Megalith's clocks: `mono` of a boot never steps, so it gives the times between its lines; the wall clock at the
// boot's first line says where they lie. A later start on another machine whose clock is behind is moved behind the
// earlier one.
class BootClocks {
 public:
  struct Reading {
    std::string_view boot;
    int64_t wall = 0;       // microseconds since the epoch
    int64_t monotonic = 0;  // microseconds
    int64_t generation = 0;
  };
  // Microseconds since the epoch.
  int64_t align(const Reading& reading);

  int64_t steps() const { return steps_; }

 private:
  struct Boot {
    std::string id;
    int64_t offset = 0;       // of our time from its monotonic clock
    int64_t wall_offset = 0;  // of its wall clock as last seen
  };
  Boot& boot_of(const Reading& reading);

  std::vector<Boot> boots_;
  size_t last_ = 0;
  int64_t newest_ = 0;
  int64_t newest_generation_ = -1;
  int64_t steps_ = 0;
};

}  // namespace megalith::observe
