#pragma once

#include <atomic>
#include <cstdint>

namespace megalith {

// How far this rank has come, written by the loop and read by whoever watches for hangs: any change is a sign of life.
struct Progress {
  std::atomic<int64_t> step{-1};        // the step being computed
  std::atomic<int64_t> microbatch{-1};  // within that step
  std::atomic<int64_t> beats{0};        // grows with every action

  void beat() { beats.fetch_add(1, std::memory_order_relaxed); }
};

}  // namespace megalith
