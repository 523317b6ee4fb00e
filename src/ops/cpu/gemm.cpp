#include "ops/gemm.h"

#include <array>
#include <memory>

#include "ops/activation.h"
#include "ops/cpu/blas.h"
#include "ops/cpu/math.h"
#include "ops/cpu/tiles.h"

namespace megalith::ops::cpu {

namespace {

struct Tile {
  int64_t rows;
  int64_t cols;
};

// A size of tile, and how many tiles of it a product must have for it to be chosen.
struct TileChoice {
  Tile tile;
  int64_t tiles;
};

// From what OpenBLAS likes best down to what is still worth a call (bench/ops_bench.cpp measures them). A big product
// takes large tiles as long as they are enough for some dozen cores; a small one gives up speed per core only for a few
// cores.
constexpr std::array<TileChoice, 8> kChoices = {{{{512, 768}, 48},
                                                 {{512, 384}, 48},
                                                 {{256, 384}, 48},
                                                 {{256, 256}, 24},
                                                 {{128, 256}, 12},
                                                 {{128, 128}, 12},
                                                 {{64, 128}, 8},
                                                 {{64, 64}, 1}}};
constexpr Tile kLargestTile = kChoices.front().tile;

// As many parts as `largest` asks for, but all of nearly one size.
int64_t even_part(int64_t length, int64_t largest) {
  constexpr int64_t kUnit = 16;
  return std::min(largest, round_up(ceil_div(length, ceil_div(length, largest)), kUnit));
}

Tile choose_tile(int64_t m, int64_t n) {
  const auto* choice = kChoices.begin();
  while (choice + 1 != kChoices.end() &&
         ceil_div(m, choice->tile.rows) * ceil_div(n, choice->tile.cols) < choice->tiles) {
    ++choice;
  }
  return {even_part(m, choice->tile.rows), even_part(n, choice->tile.cols)};
}

// A tile of c: rows [row, row + rows), columns [col, col + cols).
struct Region {
  int64_t row, rows, col, cols;
};

template <class From, class To>
void convert(Block<const From> from, int64_t rows, int64_t cols, Block<To> to) {
  for (int64_t r = 0; r < rows; ++r) {
    const From* source = from.data + r * from.stride;
    To* target = to.data + r * to.stride;
#pragma omp simd
    for (int64_t c = 0; c < cols; ++c) target[c] = round_to<To>(static_cast<Main<To>>(source[c]));
  }
}

template <class M, class T>
void add_span(M* sum, const T* x, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) sum[i] += static_cast<M>(x[i]);
}

// What is added to a region of the product: bias and addend, the latter in the dtype A.
template <class A, class T, class M>
void add_terms(const Gemm& args, const Region& region, Block<M> c) {
  for (int64_t r = 0; r < region.rows; ++r) {
    M* row = c.data + r * c.stride;
    if (args.bias) add_span(row, args.bias.as<T>() + region.col, region.cols);
    if (args.addend) add_span(row, args.addend.row<A>(region.row + r) + region.col, region.cols);
  }
}

// Where op(x)[row][col] lies in the memory of x.
template <class T>
Block<const T> operand(const Tensor& x, bool transposed, int64_t row, int64_t col) {
  return {transposed ? x.row<T>(col) + row : x.row<T>(row) + col, x.row_stride};
}

template <class M>
void multiply_region(const Gemm& args, int64_t k, const Region& region) {
  const Block<M> c{args.c.row<M>(region.row) + region.col, args.c.row_stride};
  multiply(BlockProduct<M>{.m = region.rows,
                           .n = region.cols,
                           .k = k,
                           .a = operand<M>(args.a, args.transpose_a, region.row, 0),
                           .transpose_a = args.transpose_a,
                           .b = operand<M>(args.b, args.transpose_b, 0, region.col),
                           .transpose_b = args.transpose_b,
                           .beta = static_cast<M>(args.beta),
                           .c = c});
  add_terms<M, M>(args, region, c);
}

// bf16 and fp8 are multiplied in fp32: a tile's operands are widened in pieces of kDepth, which stay in L2 while they
// are used.
constexpr int64_t kDepth = 256;

struct WideBuffers {
  std::unique_ptr<float[]> memory{new float[static_cast<size_t>((kLargestTile.rows + kLargestTile.cols) * kDepth +
                                                                kLargestTile.rows * kLargestTile.cols)]};
  float* a = memory.get();
  float* b = a + kLargestTile.rows * kDepth;
  float* c = b + kLargestTile.cols * kDepth;
};

template <class F>
void look_up(Block<const F> from, int64_t rows, int64_t cols, Block<float> to) {
  static const std::array<float, 256> kValues = [] {
    std::array<float, 256> values{};
    for (size_t i = 0; i < values.size(); ++i) {
      F code;
      code.bits = static_cast<uint8_t>(i);
      values[i] = static_cast<float>(code);
    }
    return values;
  }();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) to.data[r * to.stride + c] = kValues[from.data[r * from.stride + c].bits];
  }
}

Block<const float> widen(const Tensor& x, bool transposed, int64_t row, int64_t rows, int64_t col, int64_t cols,
                         float* memory) {
  if (transposed) {
    std::swap(row, col);
    std::swap(rows, cols);
  }
  const Block<float> wide{memory, cols};
  if (x.dtype == DType::bf16) {
    convert(operand<bfloat16>(x, false, row, col), rows, cols, wide);
  } else {
    dispatch_fp8(x.dtype,
                 [&]<class F>(std::type_identity<F>) { look_up(operand<F>(x, false, row, col), rows, cols, wide); });
  }
  return wide;
}

void multiply_region_wide(const Gemm& args, int64_t k, const Region& region, WideBuffers& buffers, Block<float> c,
                          float beta) {
  const float alpha = args.a_inverse == nullptr ? 1.0F : *args.a_inverse * *args.b_inverse;
  for (int64_t begin = 0; begin < k; begin += kDepth) {
    const int64_t depth = std::min(kDepth, k - begin);
    multiply({.m = region.rows,
              .n = region.cols,
              .k = depth,
              .alpha = alpha,
              .a = widen(args.a, args.transpose_a, region.row, region.rows, begin, depth, buffers.a),
              .transpose_a = args.transpose_a,
              .b = widen(args.b, args.transpose_b, begin, depth, region.col, region.cols, buffers.b),
              .transpose_b = args.transpose_b,
              .beta = begin == 0 ? beta : 1.0F,
              .c = c});
  }
}

void multiply_region_narrow(const Gemm& args, int64_t k, const Region& region) {
  thread_local WideBuffers buffers;
  if (args.c.dtype == DType::f32) {
    const Block<float> c{args.c.row<float>(region.row) + region.col, args.c.row_stride};
    multiply_region_wide(args, k, region, buffers, c, args.beta);
    add_terms<float, float>(args, region, c);
    return;
  }
  const Block<bfloat16> c{args.c.row<bfloat16>(region.row) + region.col, args.c.row_stride};
  const Block<float> sum{buffers.c, region.cols};
  if (args.beta != 0.0F) convert<bfloat16, float>(c, region.rows, region.cols, sum);
  multiply_region_wide(args, k, region, buffers, sum, args.beta);
  add_terms<bfloat16, bfloat16>(args, region, sum);
  convert<float, bfloat16>(sum, region.rows, region.cols, c);
}

}  // namespace

void gemm(Stream& stream, const Gemm& args) {
  const int64_t m = args.c.rows();
  const int64_t n = args.c.cols();
  const int64_t k = args.transpose_a ? args.a.rows() : args.a.cols();
  if (args.gelu_input) {
    Gemm plain = args;
    plain.c = args.gelu_input;
    plain.gelu_input = {};
    cpu::gemm(stream, plain);
    cpu::gelu_forward(stream, {.x = args.gelu_input, .y = args.c});
    return;
  }

  const Tile tile = choose_tile(m, n);
  const int64_t down = ceil_div(m, tile.rows);
  run_tiles(stream, down * ceil_div(n, tile.cols), [&](int64_t index) {
    const int64_t row = index % down * tile.rows;
    const int64_t col = index / down * tile.cols;
    const Region region{row, std::min(tile.rows, m - row), col, std::min(tile.cols, n - col)};
    switch (args.a.dtype) {
      case DType::f32:
        return multiply_region<float>(args, k, region);
      case DType::f64:
        return multiply_region<double>(args, k, region);
      default:
        return multiply_region_narrow(args, k, region);
    }
  });
}

}  // namespace megalith::ops::cpu
