#include "ops/cuda/attention/cudnn_inputs.h"

#include <math_constants.h>

namespace megalith::ops::cuda {

namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) document_tables_kernel(const __grid_constant__ DocumentTables args) {
  const int document = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (document > args.documents) return;
  const int64_t begin = args.bounds[document];
  if (document < args.documents) args.lengths[document] = static_cast<int32_t>(args.bounds[document + 1] - begin);
  for (int i = 0; i < args.count; ++i) {
    const DocumentTables::Table& table = args.tables[i];
    const int64_t sample = begin / args.length;
    table.offsets[document] = table.by_head ? sample * args.heads * table.row_elements + begin - sample * args.length
                                            : begin * table.row_elements;
  }
}

constexpr int kTile = 32;

__global__ void __launch_bounds__(kTile* kTile) statistics_by_token_kernel(StatisticsByToken args) {
  __shared__ float tile[kTile][kTile + 1];
  const int64_t sample = blockIdx.z;
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int token = static_cast<int>(blockIdx.x) * kTile;
  const int head = static_cast<int>(blockIdx.y) * kTile;
  if (head + y < args.heads && token + x < args.length) {
    tile[y][x] = args.by_head[(sample * args.heads + head + y) * args.by_head_stride + token + x];
  }
  __syncthreads();
  if (head + x < args.heads && token + y < args.length) {
    args.by_token[(sample * args.length + token + y) * args.heads + head + x] = tile[x][y];
  }
}

__global__ void __launch_bounds__(kThreads) sample_lengths_kernel(SampleLengths args) {
  const int sample = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (sample >= args.batch) return;
  args.queries[sample] = args.query_length;
  args.keys[sample] = args.key_length;
}

__global__ void __launch_bounds__(kThreads) padded_statistics_kernel(PaddedStatistics args) {
  const int64_t row = blockIdx.x;
  const float* from = args.rows + row * args.stride;
  float* to = args.padded + row * args.padded_length;
  for (int64_t i = threadIdx.x; i < args.padded_length; i += kThreads) to[i] = i < args.length ? from[i] : CUDART_INF_F;
}

unsigned blocks_of(int count, int block) {
  return static_cast<unsigned>((count + block - 1) / block);
}

}  // namespace

cudaError_t launch_document_tables(const DocumentTables& args, cudaStream_t stream) {
  document_tables_kernel<<<blocks_of(args.documents + 1, kThreads), kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

cudaError_t launch_statistics_by_token(const StatisticsByToken& args, cudaStream_t stream) {
  const dim3 blocks(blocks_of(args.length, kTile), blocks_of(args.heads, kTile), static_cast<unsigned>(args.batch));
  statistics_by_token_kernel<<<blocks, dim3(kTile, kTile), 0, stream>>>(args);
  return cudaGetLastError();
}

cudaError_t launch_sample_lengths(const SampleLengths& args, cudaStream_t stream) {
  sample_lengths_kernel<<<blocks_of(args.batch, kThreads), kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

cudaError_t launch_padded_statistics(const PaddedStatistics& args, cudaStream_t stream) {
  padded_statistics_kernel<<<static_cast<unsigned>(args.count), kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace megalith::ops::cuda
