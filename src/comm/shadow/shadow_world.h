#pragma once

#include <functional>
#include <memory>

#include "comm/world.h"

namespace megalith::comm {

// A call as a rank asks for it.
struct ShadowCall {
  std::string group;
  int members = 1;
  Operation operation = Operation::barrier;
  int64_t bytes = 0;  // Call::bytes()
};
using ShadowListener = std::function<void(const ShadowCall&)>;

// The world of one of `size` ranks without the others: calls are checked, told to the listener and counted, and nothing
// moves. For shadow streams of `device`.
std::unique_ptr<World> make_shadow_world(int rank, int size, Device device, ShadowListener listener = {});

}  // namespace megalith::comm
