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
  bool training = true;                     // gradients and optimizer state are held
  std::vector<int64_t> parameter_elements;  // of each parameter (or piece) on this rank
  int64_t optimizer_shards = 1;             // ranks that share master weights and moments

  int64_t layers = 0;               // on this rank
  int64_t micro_batches_alive = 1;  // whose activations are held at once, in units of all layers of this rank
  int64_t batch = 0;
  int64_t length = 0;
  int64_t norm_tokens = 0;  // rows of the residual stream here: fewer than batch * length under sequence parallelism
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t query_width = 0;
  int64_t qkv_width = 0;
  int64_t up_width = 0;
  int64_t ffn = 0;
  int64_t vocabulary_rows = 0;  // of the head on this rank; 0: no head here
  int64_t head_tokens_at_once = 0;
  int64_t rope_elements = 0;  // of the cos table
  bool norm_has_mean = true;
  bool keeps_recomputable = true;  // norm and activation outputs are kept
  bool keeps_blocks = true;        // else only block inputs (full recompute)
  bool hidden_dropout = false;
  int64_t document_bounds = 0;  // of a micro batch, for attention; 0: none
  int64_t attention_scratch_elements = 0;
  int64_t norm_scratch_elements = 0;
  int64_t qkv_bias_scratch_elements = 0;     // 0: no bias
  int64_t up_bias_scratch_elements = 0;      // of the first MLP matrix
  int64_t hidden_bias_scratch_elements = 0;  // of the output projections
  int64_t embedding_scratch_elements = 0;
  int64_t update_tiles = 0;  // of the optimizer, on this rank
  int64_t update_tile_bytes = 0;
  int64_t outside_bytes = 0;  // what the program and its libraries take outside the arenas
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

  int64_t total() const;
  // Bytes of a row; an unknown name is an internal error.
  int64_t bytes_of(const std::string& arena) const;
  std::string to_text() const;
};

// Rows: weights, gradients, master weights (bf16 only), moments, activations, scratch, batch, outside arenas.
MemoryTable memory_table(const MemoryInputs& inputs);

// "1.50 GiB"
std::string format_bytes(int64_t bytes);

}  // namespace megalith::cost
