#pragma once

#include <cuda_fp8.h>

#include "ops/cuda/reduce.cuh"
#include "ops/cuda/vector.cuh"

// Casts to fp8, equal to those of core/dtype.h bit for bit. The code around is compiled with fast math, which makes
// zeros of subnormal numbers: what must not is written in PTX.

namespace megalith::ops::cuda {

struct E4m3 {
  static constexpr __nv_fp8_interpretation_t kFormat = __NV_E4M3;
};
struct E5m2 {
  static constexpr __nv_fp8_interpretation_t kFormat = __NV_E5M2;
};

// body(F()) for the type that `format` names.
template <class Body>
void dispatch(Fp8 format, const Body& body) {
  if (format == Fp8::e5m2) {
    body(E5m2());
  } else {
    body(E4m3());
  }
}

// Exact, since scales are powers of two.
__device__ inline float scaled(float x, float scale) {
  float y;
  asm("mul.rn.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(scale));
  return y;
}

template <class F>
__device__ uint32_t cast_pair(float first, float second, float scale) {
  return __nv_cvt_float2_to_fp8x2(make_float2(scaled(first, scale), scaled(second, scale)), __NV_SATFINITE, F::kFormat);
}

// kWidth elements as bytes, the first lowest.
template <class F, int kWidth>
__device__ Vector<uint8_t, kWidth> cast_to_fp8(const float (&values)[kWidth], float scale) {
  static_assert(kWidth == 1 || kWidth % 4 == 0);
  Vector<uint8_t, kWidth> bytes;
  if constexpr (kWidth == 1) {
    bytes.word[0] = cast_pair<F>(values[0], 0.0f, scale) & 0xffu;
  } else {
#pragma unroll
    for (int i = 0; i < kWidth; i += 4) {
      bytes.word[i / 4] =
          cast_pair<F>(values[i], values[i + 1], scale) | cast_pair<F>(values[i + 2], values[i + 3], scale) << 16;
    }
  }
  return bytes;
}

// The largest |x| that a thread has seen; NaN is larger than all.
class Amax {
 public:
  __device__ void see(float x) {
    asm("{\n\t.reg .f32 magnitude;\n\tabs.f32 magnitude, %1;\n\tmax.NaN.f32 %0, %0, magnitude;\n\t}"
        : "+f"(largest_)
        : "f"(x));
  }

  // To be called by all lanes of a warp. Most find that something larger is there already.
  __device__ void raise(uint32_t* amax) const {
    if (amax == nullptr) return;
    const uint32_t bits = __reduce_max_sync(kAllLanes, __float_as_uint(largest_));
    if (threadIdx.x % kWarp == 0 && bits > *static_cast<volatile uint32_t*>(amax)) atomicMax(amax, bits);
  }

 private:
  float largest_ = 0.0f;
};

}  // namespace megalith::ops::cuda
