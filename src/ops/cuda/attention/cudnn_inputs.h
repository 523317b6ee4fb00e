#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace megalith::ops::cuda {

// What cuDNN's attention reads beside our matrices, made on the device.

constexpr int kMaxDocumentTables = 5;

// For each document [bounds[i], bounds[i + 1]): its length, and how many elements of each matrix lie before it. A
// matrix has a row of `row_elements` per token; where its rows are (sample, head) pairs instead, `by_head` is set and
// row_elements are those of one pair.
struct DocumentTables {
  struct Table {
    int64_t* offsets = nullptr;  // documents + 1
    int64_t row_elements = 0;
    bool by_head = false;
  };
  const int32_t* bounds = nullptr;
  int32_t documents = 0;
  int32_t length = 0;  // of a sample
  int32_t heads = 0;
  int32_t* lengths = nullptr;
  Table tables[kMaxDocumentTables] = {};
  int32_t count = 0;
};
cudaError_t launch_document_tables(const DocumentTables& args, cudaStream_t stream);

// by_token[b * length + t][h] = by_head[b * heads + h][t]
struct StatisticsByToken {
  const float* by_head = nullptr;
  int64_t by_head_stride = 0;
  float* by_token = nullptr;
  int32_t batch = 0, heads = 0, length = 0;
};
cudaError_t launch_statistics_by_token(const StatisticsByToken& args, cudaStream_t stream);

// Of samples that are all alike.
struct SampleLengths {
  int32_t* queries = nullptr;  // batch
  int32_t* keys = nullptr;
  int32_t batch = 0, query_length = 0, key_length = 0;
};
cudaError_t launch_sample_lengths(const SampleLengths& args, cudaStream_t stream);

// The same rows with a longer stride. What is behind their ends becomes infinity: the statistics of a query without
// keys, whose softmax weights are 0.
struct PaddedStatistics {
  const float* rows = nullptr;
  int64_t stride = 0;
  float* padded = nullptr;
  int64_t padded_length = 0;
  int32_t count = 0, length = 0;
};
cudaError_t launch_padded_statistics(const PaddedStatistics& args, cudaStream_t stream);

}  // namespace megalith::ops::cuda
