#include "core/trace.h"

#include <cuda_profiler_api.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

namespace megalith {

TraceRange::TraceRange(const char* name) {
  nvtxRangePushA(name);
}

TraceRange::TraceRange(const char* name, int64_t number) {
  nvtxRangePushA(fmt::format("{} {}", name, number).c_str());
}

TraceRange::~TraceRange() {
  nvtxRangePop();
}

void start_profiler() {
  cudaProfilerStart();
}

void stop_profiler() {
  cudaProfilerStop();
}

}  // namespace megalith
