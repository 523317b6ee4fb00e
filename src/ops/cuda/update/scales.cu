#include "ops/cuda/fp8.cuh"
#include "ops/cuda/update/scales_launch.h"

// What amax says is read off its bits: they are never negative, and fast math would make zeros of subnormal numbers.

namespace megalith::ops::cuda {

namespace {

constexpr uint32_t kInfinity = 0x7f800000u;
constexpr uint32_t kNan = 0x7fc00000u;

constexpr int kInspectThreads = 1024;

// One block: it counts.
__global__ void __launch_bounds__(kInspectThreads) inspect_amax_kernel(InspectAmaxLaunch args) {
  const ScaleSlots& slots = args.slots;
  int saturations = 0;
  int not_finite = 0;
  for (int64_t begin = 0; begin < slots.count; begin += kInspectThreads) {
    const int64_t i = begin + threadIdx.x;
    bool is_finite = true;
    bool is_beyond = false;
    if (i < slots.count) {
      const uint32_t amax = slots.amax[i];
      is_finite = amax < kInfinity;
      is_beyond = is_finite && scaled(__uint_as_float(amax), slots.scale[i]) > slots.largest[i];
      args.findings[i] = is_beyond ? args.codes.saturated : is_finite ? args.codes.none : args.codes.not_finite;
    }
    saturations += __syncthreads_count(is_beyond);
    not_finite += __syncthreads_count(!is_finite);
  }
  if (threadIdx.x != 0) return;
  *args.saturations = saturations;
  if (not_finite > 0) *args.squared_norm = __longlong_as_double(0x7ff8000000000000);
}

constexpr int kUpdateThreads = 256;

struct Parts {
  int exponent;
  uint64_t fraction;
};

// Of a positive number; in double, none is subnormal.
__device__ Parts parts_of(float x) {
  double wide;
  asm("cvt.f64.f32 %0, %1;" : "=d"(wide) : "f"(x));
  const auto bits = static_cast<uint64_t>(__double_as_longlong(wide));
  return {static_cast<int>(bits >> 52) - 1023, bits & 0xfffffffffffffu};
}

// The exponent of the largest power of two with power * amax <= largest / 2^margin; both it and its inverse are normal
// numbers.
__device__ int scale_exponent(uint32_t amax, float largest, int margin) {
  if (amax == 0) return 0;
  const Parts of_amax = parts_of(__uint_as_float(amax));
  const Parts of_largest = parts_of(largest);
  const int exponent =
      of_largest.exponent - margin - of_amax.exponent - (of_amax.fraction > of_largest.fraction ? 1 : 0);
  constexpr int kLargestExponent = 126;
  return max(-kLargestExponent, min(exponent, kLargestExponent));
}

__device__ float power_of_two(int exponent) {
  return __uint_as_float(static_cast<uint32_t>(exponent + 127) << 23);
}

// The block has the largest of the history once it has taken the newest amax; thread 0 has its first entry.
struct Remembered {
  uint32_t first, largest;
};
__device__ Remembered remember(const UpdateScalesLaunch& args, uint32_t* history, uint32_t newest) {
  Remembered seen{0, 0};
  // From the back, so that what is moved is still there.
  for (int64_t begin = (args.length - 1) / kUpdateThreads * kUpdateThreads; begin >= 0; begin -= kUpdateThreads) {
    const int64_t i = begin + threadIdx.x;
    const bool present = i < args.length;
    uint32_t value = 0;
    if (present) value = i == 0 && args.takes_newest ? newest : history[args.shifts ? i - 1 : i];
    __syncthreads();
    if (present && args.takes_newest) history[i] = value;
    if (i == 0) seen.first = value;
    seen.largest = max(seen.largest, value);
  }
  __shared__ uint32_t shared[kUpdateThreads / kWarp];
  seen.largest = __reduce_max_sync(kAllLanes, seen.largest);
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = seen.largest;
  __syncthreads();
#pragma unroll
  for (int warp = 0; warp < kUpdateThreads / kWarp; ++warp) seen.largest = max(seen.largest, shared[warp]);
  return seen;
}

// A block for each slot.
__global__ void __launch_bounds__(kUpdateThreads) update_scales_kernel(UpdateScalesLaunch args) {
  const int64_t slot = blockIdx.x;
  const uint32_t newest = args.slots.amax[slot];
  const bool was_skipped = args.skip != nullptr && *args.skip != 0;
  __syncthreads();
  if (threadIdx.x == 0) args.slots.amax[slot] = 0;
  const bool is_finite = newest < kInfinity;
  const bool has_history = args.history.data != nullptr;
  if (was_skipped || (!is_finite && has_history)) return;
  uint32_t amax = newest;
  if (has_history) {
    uint32_t* history = static_cast<uint32_t*>(args.history.data) + slot * args.history.row_stride;
    const Remembered seen = remember(args, history, newest);
    amax = args.most_recent ? seen.first : seen.largest;
  }
  if (threadIdx.x != 0) return;
  const int exponent = is_finite ? scale_exponent(amax, args.slots.largest[slot], args.margin) : 0;
  args.slots.scale[slot] = is_finite ? power_of_two(exponent) : __uint_as_float(kNan);
  args.slots.inverse[slot * args.slots.inverse_stride] = is_finite ? power_of_two(-exponent) : __uint_as_float(kNan);
}

}  // namespace

void launch_inspect_amax(const InspectAmaxLaunch& args, void* stream) {
  inspect_amax_kernel<<<1, kInspectThreads, 0, static_cast<cudaStream_t>(stream)>>>(args);
}

void launch_update_scales(const UpdateScalesLaunch& args, void* stream) {
  if (args.slots.count == 0) return;
  update_scales_kernel<<<static_cast<unsigned>(args.slots.count), kUpdateThreads, 0,
                         static_cast<cudaStream_t>(stream)>>>(args);
}

}  // namespace megalith::ops::cuda
