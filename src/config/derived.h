#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "config/run_config.h"

namespace megalith::config {

// What follows from the config. All of these also work before validate() has filled the defaults in.

int64_t ffn_hidden_size(const Model& model);
int64_t num_query_groups(const Model& model);
int64_t kv_channels(const Model& model);  // width of a head
int64_t max_position_embeddings(const Model& model);

// The smallest multiple of `multiple` that holds `vocab` tokens; it does not depend on the layout.
int64_t padded_vocab(int64_t vocab, int64_t multiple);

int64_t world_size(const Trainer& trainer);
int64_t model_parallel_size(const Model& model);  // ranks that hold one copy of the model
int64_t data_parallel_size(const Run& run);       // copies of the model, 1 where not even one fits
int64_t micro_batches_per_step(const Run& run);   // forward passes of one rank in one step

// f32 or bf16; a user error for a spelling that is neither.
DType compute_dtype(const Trainer& trainer);

// "DD:HH:MM:SS" as seconds.
int64_t parse_max_time(std::string_view text);

// "600", "600s", "10m", "2h", "H:M:S" or "D:H:M:S" as seconds, above 0.
double parse_time_interval(std::string_view text);

// "969, 30, 1" as the shares of training, validation and test, which sum to 1; what is left out is 0.
std::array<double, 3> parse_splits(std::string_view text);

}  // namespace megalith::config
