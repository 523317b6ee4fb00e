#pragma once

namespace megalith {

// What stands for a device without using it: arenas without memory, streams that run nothing. Code that computes then
// says what it would need and do; nothing may touch the memory of a shadow.
struct Shadow {
  int threads = 1;  // of the pool that it stands for
};

}  // namespace megalith
