#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "comm/emulated/cuda/call_launch.h"

namespace megalith::comm::cuda {

namespace {

constexpr unsigned kWarp = 32;
// With the loads that a thread has under way, so many that a few multiprocessors keep up with NVLink.
constexpr unsigned kThreads = 1024;
constexpr int kUnrolled = 4;

__device__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// One thread of a call lets its time pass and says how far it has come.
__device__ void keep_time(const CallTiming& timing) {
  volatile unsigned long long* progress = timing.progress;
  const unsigned long long base = timing.number * (kSlices + 1);
  const unsigned long long begin = nanoseconds();
  while (nanoseconds() - begin < timing.latency_ns) __nanosleep(100);
  if (timing.mark != nullptr) {
    const unsigned long long arrival = *timing.mark + timing.arrival_ns;
    while (nanoseconds() < arrival) __nanosleep(100);
  }
  double left[kLinks];
  for (int link = 0; link < kLinks; ++link) {
    left[link] = timing.links[link].bytes;
    if (left[link] > 0.0) atomicAdd(timing.links[link].active, 1U);
  }
  unsigned long long last = timing.mark != nullptr ? nanoseconds() : begin + timing.latency_ns;
  while (true) {
    const unsigned long long now = nanoseconds();
    const auto passed = static_cast<double>(now - last);
    last = now;
    double moved = 1.0;  // the share of what the slower link carries
    for (int link = 0; link < kLinks; ++link) {
      if (left[link] <= 0.0) continue;
      const CallTiming::Link& used = timing.links[link];
      const unsigned active = *const_cast<volatile unsigned*>(used.active);
      left[link] -= passed * used.bytes_per_ns / static_cast<double>(active > 1U ? active : 1U);
      if (left[link] <= 0.0) {
        atomicSub(used.active, 1U);
      } else {
        const double share = 1.0 - left[link] / used.bytes;
        moved = share < moved ? share : moved;
      }
    }
    if (moved >= 1.0) break;
    *progress = base + static_cast<unsigned long long>(moved * kSlices);
    __nanosleep(200);
  }
  *progress = base + kSlices;
}

// The whole warp returns when the call has come so far, and how far it has come.
__device__ unsigned wait_for(const CallTiming& timing, unsigned slices) {
  const unsigned long long base = timing.number * (kSlices + 1);
  unsigned come = 0;
  if (threadIdx.x % kWarp == 0) {
    const volatile unsigned long long* progress = timing.progress;
    unsigned long long now = *progress;
    while (now < base + slices) {
      __nanosleep(200);
      now = *progress;
    }
    come = static_cast<unsigned>(now - base);
  }
  return __shfl_sync(0xffffffffU, come, 0);
}

// `Work` has units(), which any thread may do in any order: load() and then store(). The first warp keeps the time, the
// others work, each slice when the wire has come to it.
template <class Work>
__global__ void __launch_bounds__(kThreads) run_call(const CallTiming timing, const Work work) {
  const unsigned warp = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (warp == 0) {
    if (threadIdx.x == 0) keep_time(timing);
    return;
  }
  const unsigned workers = (gridDim.x * (kThreads / kWarp) - 1) * kWarp;
  const unsigned worker = (warp - 1) * kWarp + threadIdx.x % kWarp;
  const unsigned long long units = work.units();
  // A worker's units are the same however many slices each warp takes together.
  unsigned long long first = worker;
  for (unsigned done = 0; done < kSlices;) {
    const unsigned come = wait_for(timing, done);
    done = come < kSlices ? come + 1 : kSlices;
    const unsigned long long end = units * done / kSlices;
    while (first < end) {
      typename Work::Loaded loaded[kUnrolled];
#pragma unroll
      for (int i = 0; i < kUnrolled; ++i) {
        const unsigned long long unit = first + static_cast<unsigned long long>(workers) * i;
        if (unit < end) loaded[i] = work.load(unit);
      }
#pragma unroll
      for (int i = 0; i < kUnrolled; ++i) {
        const unsigned long long unit = first + static_cast<unsigned long long>(workers) * i;
        if (unit < end) work.store(unit, loaded[i]);
      }
      const unsigned long long left = (end - first + workers - 1) / workers;
      first += workers * (left < kUnrolled ? left : kUnrolled);
    }
  }
  wait_for(timing, kSlices);
}

// As much shared memory as a block may have, for which the kernel is made ready: NCCL's blocks leave no room for those
// of a GEMM either. Below 0 where that is refused.
template <class Work>
int shared_bytes() {
  int device = 0;
  int most = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status == cudaSuccess) status = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (status == cudaSuccess)
    status = cudaFuncSetAttribute(run_call<Work>, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
  return status == cudaSuccess ? most : -1;
}

template <class Work>
int launch(const CallTiming& timing, const Work& work, int blocks, void* stream) {
  static const int held = shared_bytes<Work>();  // a rank has one device, and calls are many and short
  if (held < 0) return cudaErrorInvalidConfiguration;
  run_call<Work>
      <<<static_cast<unsigned>(blocks), kThreads, static_cast<size_t>(held), static_cast<cudaStream_t>(stream)>>>(
          timing, work);
  return cudaGetLastError();
}

// Divides numbers below 2^31 by one that the host knows, in three instructions: a division for each load would take
// longer than the load.
struct Divisor {
  unsigned value, factor, shift;

  static Divisor of(unsigned value) {
    unsigned shift = 0;
    while ((1ULL << shift) < value) ++shift;
    const unsigned long long factor = (1ULL << 32) * ((1ULL << shift) - value) / value + 1;
    return {value, static_cast<unsigned>(factor), shift};
  }
  __device__ unsigned quotient(unsigned number) const { return (__umulhi(number, factor) + number) >> shift; }
  __device__ unsigned remainder(unsigned number) const { return number - quotient(number) * value; }
};

// Copies in units of one size, which divides all that a CopyWork names.
template <class Unit>
struct CopyUnits {
  struct One {
    const Unit* from;
    Unit* to;
    Divisor piece, period;
    unsigned pieces, source_stride, offset;
    int skipped;
  };
  One one[kMostCopies];
  int count;

  using Loaded = Unit;

  __host__ __device__ unsigned long long units() const {
    unsigned long long sum = 0;
    for (int i = 0; i < count; ++i) sum += static_cast<unsigned long long>(one[i].piece.value) * one[i].pieces;
    return sum;
  }

  // Which copy the unit belongs to; `unit` becomes its number there.
  __device__ const One& find(unsigned long long& unit) const {
    int i = 0;
    while (i + 1 < count && unit >= static_cast<unsigned long long>(one[i].piece.value) * one[i].pieces) {
      unit -= static_cast<unsigned long long>(one[i].piece.value) * one[i].pieces;
      ++i;
    }
    return one[i];
  }

  __device__ Unit load(unsigned long long unit) const {
    const One& copy = find(unit);
    const unsigned piece = copy.piece.quotient(static_cast<unsigned>(unit));
    const unsigned within = static_cast<unsigned>(unit) - piece * copy.piece.value;
    return copy.from[static_cast<unsigned long long>(piece) * copy.source_stride +
                     copy.period.remainder(copy.offset + within)];
  }

  __device__ void store(unsigned long long unit, const Unit& value) const {
    const One& copy = find(unit);
    if (static_cast<int>(copy.piece.quotient(static_cast<unsigned>(unit))) == copy.skipped) return;
    copy.to[unit] = value;
  }
};

template <class Unit>
int launch_units(const CallTiming& timing, const Copies& copies, int blocks, void* stream) {
  constexpr int64_t kBytes = sizeof(Unit);
  CopyUnits<Unit> work;
  work.count = 0;
  for (int i = 0; i < copies.count; ++i) {
    const CopyWork& copy = copies.work[i];
    if (copy.piece_bytes == 0 || copy.pieces == 0) continue;
    if (copy.piece_bytes / kBytes * copy.pieces + copy.period / kBytes >= (int64_t{1} << 31))
      return cudaErrorInvalidValue;
    auto& one = work.one[work.count++];
    one.from = static_cast<const Unit*>(copy.from);
    one.to = static_cast<Unit*>(copy.to);
    one.piece = Divisor::of(static_cast<unsigned>(copy.piece_bytes / kBytes));
    one.pieces = static_cast<unsigned>(copy.pieces);
    one.source_stride = static_cast<unsigned>(copy.source_stride / kBytes);
    one.period = Divisor::of(static_cast<unsigned>(copy.period / kBytes));
    one.offset = static_cast<unsigned>(copy.offset / kBytes);
    one.skipped = static_cast<int>(copy.skipped);
  }
  return launch(timing, work, blocks, stream);
}

// What divides every address and size of the copies.
uint64_t common_bits(const Copies& copies) {
  uint64_t bits = 0;
  for (int i = 0; i < copies.count; ++i) {
    const CopyWork& copy = copies.work[i];
    bits |= reinterpret_cast<uint64_t>(copy.from) | reinterpret_cast<uint64_t>(copy.to);
    bits |= static_cast<uint64_t>(copy.piece_bytes) | static_cast<uint64_t>(copy.source_stride);
    bits |= static_cast<uint64_t>(copy.period) | static_cast<uint64_t>(copy.offset);
  }
  return bits;
}

template <class T>
struct Sum {
  using Type = T;
};
template <>
struct Sum<__nv_bfloat16> {
  using Type = float;
};

__device__ float widen(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
template <class T>
__device__ T widen(T value) {
  return value;
}
__device__ void narrow(float value, __nv_bfloat16& to) {
  to = __float2bfloat16_rn(value);
}
template <class T>
__device__ void narrow(T value, T& to) {
  to = value;
}

template <class T, int kWidth>
struct ReduceUnits {
  struct alignas(sizeof(T) * kWidth) Loaded {
    T value[kWidth];
  };
  const T* from;
  T* to;
  unsigned long long elements, stride;
  int pieces, factor;
  bool largest;

  __host__ __device__ unsigned long long units() const { return elements / kWidth; }

  __device__ Loaded load(unsigned long long unit) const {
    using A = typename Sum<T>::Type;
    const T* own = from + unit * kWidth;
    Loaded first = *reinterpret_cast<const Loaded*>(own);
    A total[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) total[i] = widen(first.value[i]);
#pragma unroll 4
    for (int piece = 1; piece < pieces; ++piece) {
      const Loaded next = *reinterpret_cast<const Loaded*>(own + piece * stride);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const A value = widen(next.value[i]);
        if (largest) {
          total[i] = value > total[i] || value != value ? value : total[i];
        } else {
          total[i] += value;
        }
      }
    }
    Loaded result;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) narrow(total[i] * static_cast<A>(factor), result.value[i]);
    return result;
  }

  __device__ void store(unsigned long long unit, const Loaded& value) const {
    *reinterpret_cast<Loaded*>(to + unit * kWidth) = value;
  }
};

template <class T, int kWidth>
int launch_typed(const CallTiming& timing, const ReduceWork& asked, int blocks, void* stream) {
  ReduceUnits<T, kWidth> work;
  work.from = static_cast<const T*>(asked.from);
  work.to = static_cast<T*>(asked.to);
  work.elements = static_cast<unsigned long long>(asked.elements);
  work.stride = static_cast<unsigned long long>(asked.stride);
  work.pieces = static_cast<int>(asked.pieces);
  work.factor = asked.factor;
  work.largest = asked.largest;
  return launch(timing, work, blocks, stream);
}

template <class T>
int launch_number(const CallTiming& timing, const ReduceWork& work, int blocks, void* stream) {
  constexpr int kWide = 16 / static_cast<int>(sizeof(T));
  const uint64_t addresses = reinterpret_cast<uint64_t>(work.from) | reinterpret_cast<uint64_t>(work.to);
  const bool wide = addresses % 16 == 0 && work.elements % kWide == 0 && work.stride % kWide == 0;
  return wide ? launch_typed<T, kWide>(timing, work, blocks, stream) : launch_typed<T, 1>(timing, work, blocks, stream);
}

__global__ void write_mark(unsigned long long* mark) {
  *mark = nanoseconds();
}

}  // namespace

int launch_mark(unsigned long long* mark, void* stream) {
  write_mark<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(mark);
  return cudaGetLastError();
}

int launch_copies(const CallTiming& timing, const Copies& copies, int blocks, void* stream) {
  const uint64_t bits = common_bits(copies);
  if (bits % 16 == 0) return launch_units<uint4>(timing, copies, blocks, stream);
  if (bits % 4 == 0) return launch_units<uint32_t>(timing, copies, blocks, stream);
  if (bits % 2 == 0) return launch_units<uint16_t>(timing, copies, blocks, stream);
  return launch_units<uint8_t>(timing, copies, blocks, stream);
}

int launch_reduce(const CallTiming& timing, const ReduceWork& work, int blocks, void* stream) {
  switch (work.number) {
    case Number::f32:
      return launch_number<float>(timing, work, blocks, stream);
    case Number::bf16:
      return launch_number<__nv_bfloat16>(timing, work, blocks, stream);
    case Number::f64:
      return launch_number<double>(timing, work, blocks, stream);
    case Number::i32:
      return launch_number<int>(timing, work, blocks, stream);
    case Number::i64:
      return launch_number<long long>(timing, work, blocks, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace megalith::comm::cuda
