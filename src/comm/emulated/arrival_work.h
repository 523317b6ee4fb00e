#pragma once

#include <cstdint>

// What a call does to memory, as plain numbers, which kernels take too: those are C++17 without the standard library.

namespace megalith::comm {

// Byte b of piece p of `to` is byte (offset + b) % period of piece p of `from`. A piece that is there already is
// skipped; -1: none.
struct CopyWork {
  const void* from;
  void* to;
  int64_t piece_bytes;
  int64_t pieces;
  int64_t source_stride;
  int64_t period;
  int64_t offset;
  int64_t skipped;
};
constexpr int kMostCopies = 4;
struct Copies {
  CopyWork work[kMostCopies];
  int count;
};

enum class Number { f32, bf16, f64, i32, i64 };

// to[i] = factor x (from[i] + from[stride + i] + ...), or the largest of them. `to` may be one of the pieces.
struct ReduceWork {
  Number number;
  const void* from;
  void* to;
  int64_t elements;
  int64_t pieces;
  int64_t stride;
  bool largest;
  int factor;
};

}  // namespace megalith::comm
