#pragma once

#include <cstdint>

// What a GPU profiler (Nsight Systems) is told. Without CUDA, and where no profiler looks on, nothing.

namespace megalith {

// A named stretch of the host's work; ranges nest.
class TraceRange {
 public:
  // "forward, layer 3" is ("forward, layer", 3).
  explicit TraceRange(const char* name);
  TraceRange(const char* name, int64_t number);
  ~TraceRange();
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;
};

// The capture range: a profiler started with it set to cudaProfilerApi records between the two.
void start_profiler();
void stop_profiler();

}  // namespace megalith
