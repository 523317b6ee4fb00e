#include <cub/device/device_radix_sort.cuh>

#include "ops/cuda/embedding_launch.h"

namespace megalith::ops::cuda {

int launch_sort(const SortLaunch& args, void* stream) {
  cub::DoubleBuffer<uint32_t> keys(args.keys, args.keys + args.count);
  cub::DoubleBuffer<uint32_t> rows(args.rows, args.rows + args.count);
  const auto count = static_cast<int>(args.count);
  const auto on = static_cast<cudaStream_t>(stream);
  size_t needed = 0;
  cub::DeviceRadixSort::SortPairs(nullptr, needed, keys, rows, count, 0, args.key_bits, on);
  if (static_cast<int64_t>(needed) > args.temporary_bytes) return -1;
  cub::DeviceRadixSort::SortPairs(args.temporary, needed, keys, rows, count, 0, args.key_bits, on);
  return keys.selector;
}

}  // namespace megalith::ops::cuda
