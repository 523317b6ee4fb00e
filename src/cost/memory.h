#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace megalith::cost {

// What a rank's memory follows from, already divided by its layout: pure numbers, so that a planner can ask about any
// rank.
struct MemoryInputs {
  DType compute = DType::f32;
  bool training = true;  // gradients and optimizer state are held

  // Of the parameters on this rank and their state.
  int64_t weight_bytes = 0;
  int64_t gradient_bytes = 0;
  int64_t remainder_bytes = 0;
  int64_t moment_bytes = 0;
  int64_t update_table_bytes = 0;

  // Layers that are computed in one go.
  struct Chunk {
    int64_t slots = 1;        // micro batches whose activations are kept at once
    int64_t groups = 0;       // of layers, each of which keeps its input
    int64_t kept_layers = 0;  // that keep everything that backward reads
  };
  std::vector<Chunk> chunks;
  int64_t layers = 0;               // of all chunks
  int64_t recomputed_together = 0;  // layers that are made again in one go in backward
  int64_t stream_buffers = 0;       // pieces of the residual stream between chunks
  int64_t batches = 1;              // micro batches whose tokens are held at once
  bool defers_products = false;     // weight gradients are made later than the others

  int64_t batch = 0;  // sequences
  int64_t length = 0;
  int64_t rows = 0;  // of the residual stream here: fewer than batch * length under sequence parallelism
  int64_t tensor_ranks = 1;
  int64_t context_ranks = 1;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t query_width = 0;
  int64_t kv_width = 0;
  int64_t up_width = 0;
  int64_t ffn = 0;
  bool has_embedding = true;
  int64_t vocabulary_rows = 0;  // of the head on this rank; 0: no head here
  int64_t head_tokens_at_once = 0;
  int64_t rope_elements = 0;  // of the cos table
  bool norm_has_mean = true;
  bool keeps_recomputable = true;  // norm and activation outputs are kept
  bool hidden_dropout = false;
  int64_t document_bounds = 0;  // of a micro batch, for attention; 0: none
  int64_t attention_scratch_elements = 0;
  int64_t norm_scratch_elements = 0;
  int64_t qkv_bias_scratch_elements = 0;     // 0: no bias
  int64_t up_bias_scratch_elements = 0;      // of the first MLP matrix
  int64_t hidden_bias_scratch_elements = 0;  // of the output projections
  int64_t embedding_scratch_elements = 0;
  int64_t orders_of_rows = 0;  // that a micro batch has for the embedding's backward pass
  int64_t order_scratch_elements = 0;
  int64_t reduction_bytes = 0;  // for gradients that travel in another type
  int64_t outside_bytes = 0;    // what the program and its libraries take outside the arenas
};

// The row for the program itself and its libraries.
constexpr const char* kOutsideArenas = "outside arenas";

struct MemoryRow {
  std::string arena;
  int64_t bytes = 0;
  std::string holds;
};

struct MemoryTable {
  std::vector<MemoryRow> rows;
  int64_t deferred_bytes_per_layer = 0;  // that a slot keeps

  int64_t total() const;
  // Bytes of a row; 0 where there is none.
  int64_t bytes_of(const std::string& arena) const;
  std::string to_text() const;
};

// Rows: weights, gradients, master weights (bf16 only), moments, activations, scratch, batch, outside arenas; and what
// only some layouts need.
MemoryTable memory_table(const MemoryInputs& inputs);

// "1.50 GiB"
std::string format_bytes(int64_t bytes);

}  // namespace megalith::cost
