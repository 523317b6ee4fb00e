#include <cub/device/device_radix_sort.cuh>

#include "ops/cuda/reduce.cuh"
#include "ops/cuda/vector.cuh"
#include "ops/cuda/vocabulary/row_order_launch.h"

namespace megalith::ops::cuda {

namespace {

__device__ uint32_t key_of(const RowOrderLaunch& args, int64_t row) {
  const int32_t key = args.given[row];
  return static_cast<uint32_t>(0 <= key && key < args.limit ? key : args.limit);
}

// ---- few rows: each counts those before it, in one launch, where a radix sort takes half a dozen -------------------

constexpr int kCountBits = 13;
constexpr int kCountLimit = 1 << kCountBits;  // rows
constexpr int kCountWarps = 32;               // of a block, each with a slice of all rows
constexpr int kCountRows = 2 * kWarp;         // of a block, two for each lane

// A key and its row in one word, which compares as both do.
__global__ void __launch_bounds__(kWarp* kCountWarps)
    counting_sort_kernel(const __grid_constant__ RowOrderLaunch args) {
  __shared__ uint4 fours[kCountLimit / 4];
  __shared__ uint32_t counts[kCountWarps][kCountRows];
  auto* words = reinterpret_cast<uint32_t*>(fours);
  const int count = static_cast<int>(args.count);
  const int slice = (count + 4 * kCountWarps - 1) / (4 * kCountWarps);  // in fours
  const int lane = static_cast<int>(threadIdx.x);
  const int warp = static_cast<int>(threadIdx.y);
  const int thread = warp * kWarp + lane;
#pragma unroll
  for (int i = 0; i < kCountLimit / (kWarp * kCountWarps); ++i) {
    const int row = i * kWarp * kCountWarps + thread;
    if (row < count) {
      words[row] = key_of(args, row) << kCountBits | static_cast<uint32_t>(row);
    } else if (row < slice * 4 * kCountWarps) {
      words[row] = 0xffffffffu;  // comes before none
    }
  }
  __syncthreads();

  const int first = static_cast<int>(blockIdx.x) * kCountRows;
  const uint32_t low = words[min(first + lane, count - 1)];
  const uint32_t high = words[min(first + lane + kWarp, count - 1)];
  uint32_t before_low = 0;
  uint32_t before_high = 0;
#pragma unroll 8
  for (int i = warp * slice; i < (warp + 1) * slice; ++i) {
    const uint4 four = fours[i];
    before_low += (four.x < low) + (four.y < low) + (four.z < low) + (four.w < low);
    before_high += (four.x < high) + (four.y < high) + (four.z < high) + (four.w < high);
  }
  counts[warp][lane] = before_low;
  counts[warp][lane + kWarp] = before_high;
  __syncthreads();
  const int row = first + thread;
  if (thread >= kCountRows || row >= count) return;
  uint32_t place = 0;
#pragma unroll
  for (int w = 0; w < kCountWarps; ++w) place += counts[w][thread];
  args.keys[place] = static_cast<int32_t>(words[row] >> kCountBits);
  args.rows[place] = row;
}

// ---- any number of rows ---------------------------------------------------------------------------------------------

constexpr int kPrepareThreads = 256;

__global__ void prepare_kernel(const __grid_constant__ RowOrderLaunch args, uint32_t* keys, uint32_t* rows) {
  const uint32_t row = blockIdx.x * kPrepareThreads + threadIdx.x;
  if (row >= args.count) return;
  keys[row] = key_of(args, row);
  rows[row] = row;
}

int bits_of(int64_t value) {
  int bits = 1;
  while (value >> bits != 0) ++bits;
  return bits;
}

}  // namespace

bool launch_row_order(const RowOrderLaunch& args, void* stream) {
  if (args.count == 0) return true;
  const auto on = static_cast<cudaStream_t>(stream);
  const int key_bits = bits_of(args.limit);
  if (args.count <= kCountLimit && key_bits + kCountBits <= 32) {
    counting_sort_kernel<<<static_cast<unsigned>(divide_up(args.count, kCountRows)), dim3(kWarp, kCountWarps), 0, on>>>(
        args);
    return true;
  }
  auto* given_keys = reinterpret_cast<uint32_t*>(args.scratch);
  uint32_t* given_rows = given_keys + args.count;
  const int64_t tables_at = divide_up(2 * args.count, 64) * 64;  // cub wants 256 bytes
  auto* keys = reinterpret_cast<uint32_t*>(args.keys);
  auto* rows = reinterpret_cast<uint32_t*>(args.rows);
  const auto count = static_cast<int>(args.count);
  size_t needed = 0;
  cub::DeviceRadixSort::SortPairs(nullptr, needed, given_keys, keys, given_rows, rows, count, 0, key_bits, on);
  if (static_cast<int64_t>(needed) > (args.scratch_elements - tables_at) * 4) return false;
  prepare_kernel<<<static_cast<unsigned>(divide_up(args.count, kPrepareThreads)), kPrepareThreads, 0, on>>>(
      args, given_keys, given_rows);
  cub::DeviceRadixSort::SortPairs(args.scratch + tables_at, needed, given_keys, keys, given_rows, rows, count, 0,
                                  key_bits, on);
  return true;
}

}  // namespace megalith::ops::cuda
