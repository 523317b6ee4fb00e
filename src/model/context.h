#pragma once

#include <vector>

#include "core/arena.h"
#include "core/stream.h"
#include "model/deferred_products.h"
#include "ops/dropout.h"
#include "ops/vocabulary/row_order.h"
#include "parallel/context_split.h"
#include "parallel/replica_sync.h"
#include "parallel/tensor_region.h"

namespace megalith::model {

// Places where dropout is drawn, numbered so that no two share random numbers.
enum class DropoutSite : uint32_t { embedding = 0, attention_weights = 1, attention_output = 2, mlp_output = 3 };

// Keys and values of the tokens so far of some sequences, one tensor (sequences * max_length, kv_width) per layer:
// generation reads them back.
struct KvCache {
  struct Sequence {
    int64_t first_row = 0;  // of the sequence in the tensors
    int64_t position = 0;   // of the first token that is fed
  };
  std::vector<Tensor> keys;
  std::vector<Tensor> values;
  std::vector<Sequence> sequences;  // of the batch
};

// The ranks that share the positions of each sample (context parallelism). A rank's sequences are then its blocks: the
// front and the back one of each sample.
struct SharedSamples {
  comm::Communicator* group = &comm::lone_group();
  parallel::ContextSplit split = {};

  bool are_shared() const { return !group->is_alone(); }
};

// Sizes of the activations of one micro batch on one rank.
struct ActivationShape {
  int64_t batch = 0;
  int64_t length = 0;
  int64_t rows = 0;  // of the residual stream

  int64_t tokens() const { return batch * length; }
};

// What a pass over one micro batch needs beside the activations.
struct Context {
  Stream& stream;
  Arena& scratch;
  int64_t batch = 0;  // sequences: samples, or the blocks of them that this rank has
  int64_t length = 0;
  int64_t position_offset = 0;
  Tensor sample_ids = {};       // (batch) i64: the samples' numbers in the training order
  Tensor first_positions = {};  // (batch) i32: where each sequence begins in its sample; absent: at 0
  Tensor document_starts = {};  // (tokens) i32: where attention stops looking back; absent: at the sample's start
  Tensor document_bounds = {};  // as ops/attention.h has them; absent: of too many documents, or of none
  Tensor positions = {};        // (tokens) i32; absent: counted along the sequence
  ops::RowOrder positions_order = {};
  uint64_t seed = 0;
  const uint64_t* step = nullptr;  // in the memory of the stream's device
  bool training = false;           // dropout is drawn
  bool first_of_step = false;      // weight gradients are overwritten, not added to
  bool casts_weights = false;      // forward makes the fp8 copies of the weights anew
  bool deterministic = true;
  KvCache* cache = nullptr;
  parallel::TensorRegion tensor = {};
  SharedSamples samples = {};
  DeferredProducts* deferred = nullptr;  // set: weight gradients are made later
  parallel::LayerTraffic traffic = {};   // of the weights and gradients that come and go while the pass runs

  int64_t tokens() const { return batch * length; }
  // Of the residual stream on this rank.
  int64_t rows() const { return tensor.rows_of(tokens()); }
  // Memory for what products of weight gradients read.
  Arena& kept() const { return deferred != nullptr ? deferred->arena() : scratch; }
  // What a product added to a parameter's gradient adds to: nothing in the first micro batch of a step.
  float gradient_beta() const { return first_of_step ? 0.0F : 1.0F; }

  ops::Dropout dropout(double probability, int64_t layer, DropoutSite site) const {
    if (!training) return {};
    return {.probability = probability,
            .seed = seed,
            .site = static_cast<uint32_t>(layer) * 4 + static_cast<uint32_t>(site),
            .step = step,
            .sample_ids = sample_ids,
            .first_positions = first_positions,
            .length = length};
  }
  // The same for the rows of the residual stream on this rank.
  ops::Dropout dropout_of_rows(double probability, int64_t layer, DropoutSite site) const {
    ops::Dropout drawn = dropout(probability, layer, site);
    if (training) drawn.first_row = tensor.first_row_of(tokens());
    return drawn;
  }
};

}  // namespace megalith::model
