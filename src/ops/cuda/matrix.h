#pragma once

#include <cstdint>

// What entries hand to launchers: plain data that both C++20 and nvcc's C++17 read.

namespace megalith::ops::cuda {

enum class Element : uint8_t { f32, bf16 };

constexpr int64_t size_of(Element element) {
  return element == Element::bf16 ? 2 : 4;
}

// Rows are row_stride elements apart; absent where data is null.
struct Matrix {
  void* data = nullptr;
  int64_t row_stride = 0;
};

// The shape that all matrices of a call share.
struct Extent {
  int64_t rows = 0;
  int64_t cols = 0;
  Element element = Element::f32;
};

enum class Fp8 : uint8_t { e4m3, e5m2 };

// Where an fp8 operand is written to.
struct Fp8Operand {
  Fp8 format = Fp8::e4m3;
  Matrix rows;     // absent: not written
  Matrix columns;  // likewise
  const float* scale = nullptr;
  uint32_t* amax = nullptr;  // null: nobody asks
};

// Where each row of a micro batch stands in its sample: offset + row % length, or as given.
struct RowPositions {
  const int32_t* given = nullptr;
  int64_t offset = 0;
  int64_t length = 1;
};

}  // namespace megalith::ops::cuda
