#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parallel/placement/parameter_table.h"

namespace megalith::parallel {

// How layers are divided over pipeline stages where an equal number each is not what is wanted.
struct LayerSplit {
  int64_t first_stage = 0;  // layers of the first stage, all its chunks together; 0: as many as the others
  int64_t last_stage = 0;
  bool counts_embedding = false;  // the embedding takes the place of a layer in the first chunk
  bool counts_loss = false;       // and the head that of one in the last

  bool operator==(const LayerSplit&) const = default;
};

enum class PipelineSchedule {
  one_forward_one_backward,  // interleaved where a stage has several chunks
  zero_bubble,               // ZB-H1: the weights' part of backward fills what would be idle time
};

// How a model is divided over ranks.
struct Layout {
  int64_t tensor = 1;
  int64_t pipeline = 1;
  int64_t chunks = 1;  // per pipeline stage (virtual pipeline)
  int64_t context = 1;
  int64_t data = 1;
  bool sequence_parallel = false;
  bool shards_optimizer = false;
  bool shards_weights = false;  // and gradients: a chunk is whole only while it is used. Shards the optimizer too
  LayerSplit split = {};
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;

  int64_t world() const { return tensor * pipeline * context * data; }
  // Chunks of the whole model, in the order of its layers: chunk c of stage s is number c * pipeline + s.
  int64_t virtual_stages() const { return pipeline * chunks; }
  // Ranks that hold the same weights and add up their gradients.
  int64_t replicas() const { return data * context; }
  int64_t optimizer_shards() const { return shards_optimizer || shards_weights ? replicas() : 1; }

  bool operator==(const Layout&) const = default;
};

// "tensor 8 x pipeline 18 (7 chunks) x context 1 x data 3"
std::string to_string(const Layout& layout);

// The shape of a rank's piece of a parameter when `tensor` ranks share it.
Shape local_shape(const ParameterSpec& spec, int64_t tensor);

// The layer that a parameter belongs to, where it belongs to one.
std::optional<int64_t> layer_of(const ParameterSpec& spec);
bool is_token_embedding(const ParameterSpec& spec);

// Where a parameter is used.
struct Home {
  int64_t stage = 0;
  int64_t chunk = 0;

  bool operator==(const Home&) const = default;
};

// The homes of a parameter: one, or the first and the last stage for a tied embedding.
std::vector<Home> homes_of(const ParameterSpec& spec, const Layout& layout, int64_t layers, bool tied_embeddings);

}  // namespace megalith::parallel
