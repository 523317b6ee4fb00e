#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "ops/cuda/matrix.h"

// Elements in device code: read and written 16 bytes at a time, computed with in fp32.

namespace megalith::ops::cuda {

using bf16 = __nv_bfloat16;

template <class T>
constexpr int kFullWidth = 16 / static_cast<int>(sizeof(T));

// kWidth consecutive elements as they lie in memory: a power of two up to 32 bytes.
template <class T, int kWidth>
struct Vector {
  static constexpr int kBytes = kWidth * static_cast<int>(sizeof(T));
  static constexpr int kWords = kBytes < 4 ? 1 : kBytes / 4;
  uint32_t word[kWords];

  __device__ float operator[](int i) const {
    if constexpr (sizeof(T) == 4) {
      return __uint_as_float(word[i]);
    } else {
      return __uint_as_float(i % 2 == 0 ? word[i / 2] << 16 : word[i / 2] & 0xffff0000u);
    }
  }

  __device__ static Vector from(const float (&values)[kWidth]) {
    Vector result;
    if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) result.word[i] = __float_as_uint(values[i]);
    } else if constexpr (kWidth == 1) {
      result.word[0] = __bfloat16_as_ushort(__float2bfloat16_rn(values[0]));
    } else {
#pragma unroll
      for (int i = 0; i < kWidth; i += 2) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(values[i], values[i + 1]);
        result.word[i / 2] = static_cast<uint32_t>(__bfloat16_as_ushort(pair.x)) |
                             static_cast<uint32_t>(__bfloat16_as_ushort(pair.y)) << 16;
      }
    }
    return result;
  }

  __device__ static Vector filled(float value) {
    float values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[i] = value;
    return from(values);
  }
};

// The plain load: for what other threads read too (weights, tables).
template <int kWidth, class T>
__device__ Vector<T, kWidth> load(const T* from) {
  using V = Vector<T, kWidth>;
  V result;
  if constexpr (V::kBytes == 1) {
    result.word[0] = *reinterpret_cast<const uint8_t*>(from);
  } else if constexpr (V::kBytes == 2) {
    result.word[0] = *reinterpret_cast<const uint16_t*>(from);
  } else if constexpr (V::kBytes == 4) {
    result.word[0] = *reinterpret_cast<const uint32_t*>(from);
  } else if constexpr (V::kBytes == 8) {
    const uint2 bits = *reinterpret_cast<const uint2*>(from);
    result.word[0] = bits.x;
    result.word[1] = bits.y;
  } else {
#pragma unroll
    for (int i = 0; i < V::kWords; i += 4) {
      const uint4 bits = reinterpret_cast<const uint4*>(from)[i / 4];
      result.word[i] = bits.x;
      result.word[i + 1] = bits.y;
      result.word[i + 2] = bits.z;
      result.word[i + 3] = bits.w;
    }
  }
  return result;
}

// For what is read once: it leaves L1 to what is read again. Not the read-only path: operations work in place, where
// each element is written by the thread that has read it, out of what it read.
template <int kWidth, class T>
__device__ Vector<T, kWidth> load_once(const T* from) {
  using V = Vector<T, kWidth>;
  V result;
  if constexpr (V::kBytes < 8) {
    result = load<kWidth>(from);
  } else if constexpr (V::kBytes == 8) {
    asm volatile("ld.global.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
                 : "=r"(result.word[0]), "=r"(result.word[1])
                 : "l"(from));
  } else {
#pragma unroll
    for (int i = 0; i < V::kWords; i += 4) {
      asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(result.word[i]), "=r"(result.word[i + 1]), "=r"(result.word[i + 2]), "=r"(result.word[i + 3])
                   : "l"(reinterpret_cast<const uint4*>(from) + i / 4));
    }
  }
  return result;
}

template <class T, int kWidth>
__device__ void store(T* to, const Vector<T, kWidth>& vector) {
  using V = Vector<T, kWidth>;
  if constexpr (V::kBytes == 1) {
    *reinterpret_cast<uint8_t*>(to) = static_cast<uint8_t>(vector.word[0]);
  } else if constexpr (V::kBytes == 2) {
    *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(vector.word[0]);
  } else if constexpr (V::kBytes == 4) {
    *reinterpret_cast<uint32_t*>(to) = vector.word[0];
  } else if constexpr (V::kBytes == 8) {
    *reinterpret_cast<uint2*>(to) = make_uint2(vector.word[0], vector.word[1]);
  } else {
#pragma unroll
    for (int i = 0; i < V::kWords; i += 4) {
      reinterpret_cast<uint4*>(to)[i / 4] =
          make_uint4(vector.word[i], vector.word[i + 1], vector.word[i + 2], vector.word[i + 3]);
    }
  }
}

// For what is not read again soon: it leaves L2 to what is.
template <class T, int kWidth>
__device__ void store_once(T* to, const Vector<T, kWidth>& vector) {
  using V = Vector<T, kWidth>;
  if constexpr (V::kBytes < 8) {
    store(to, vector);
  } else if constexpr (V::kBytes == 8) {
    __stcs(reinterpret_cast<uint2*>(to), make_uint2(vector.word[0], vector.word[1]));
  } else {
#pragma unroll
    for (int i = 0; i < V::kWords; i += 4) {
      __stcs(reinterpret_cast<uint4*>(to) + i / 4,
             make_uint4(vector.word[i], vector.word[i + 1], vector.word[i + 2], vector.word[i + 3]));
    }
  }
}

// A pointer to rows of T, as kernels take it.
template <class T>
struct Rows {
  T* data;
  int64_t row_stride;

  Rows() = default;
  explicit Rows(const Matrix& matrix) : data(static_cast<T*>(matrix.data)), row_stride(matrix.row_stride) {}
  __device__ T* at(int64_t row, int64_t col) const { return data + row * row_stride + col; }
};

// body(T()) for the type that `element` names.
template <class Body>
void dispatch(Element element, const Body& body) {
  if (element == Element::bf16) {
    body(bf16());
  } else {
    body(float());
  }
}

// Null is aligned.
inline bool address_aligned(const void* address, int64_t bytes = 16) {
  return reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(bytes) == 0;
}

// Whether every row begins at a multiple of `bytes`; an absent matrix does.
inline bool rows_aligned(const Matrix& matrix, int64_t rows, int64_t element_size, int64_t bytes = 16) {
  return address_aligned(matrix.data, bytes) && (rows <= 1 || matrix.row_stride * element_size % bytes == 0);
}

constexpr int64_t divide_up(int64_t dividend, int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

}  // namespace megalith::ops::cuda
