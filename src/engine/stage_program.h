#pragma once

#include <map>
#include <optional>
#include <vector>

#include "model/chunk.h"
#include "parallel/layout.h"
#include "parallel/placement/placement.h"
#include "parallel/schedule/data_parallel_actions.h"
#include "parallel/schedule/step_program.h"
#include "parallel/schedule/transfers.h"

namespace megalith::engine {

// What a run asks of its ranks.
struct StageRequest {
  model::ModelConfig config;
  parallel::Layout layout = {};
  int64_t batch = 0;  // micro batch
  int64_t length = 0;
  int64_t micro_batches = 1;                     // per step and data-parallel rank
  std::vector<int64_t> ramp_micro_batches = {};  // of the smaller steps of a run whose batch grows
  Device device = Device::cpu;
  int threads = 1;  // of the host
  bool training = true;
  int64_t bucket_elements = int64_t{40} << 20;
  bool reduces_in_bf16 = false;  // gradients, between ranks
};

// How long this layout's ranks hold whole weights.
parallel::WeightLife weight_life(const parallel::Layout& layout);

// The parameters of the ranks of a stage; `table` must outlive it.
parallel::Placement place_parameters(const StageRequest& request, const parallel::ParameterTable& table, int64_t stage,
                                     int64_t tensor_rank);

// Everything about the ranks of a pipeline stage that is known before memory is: data that the engine executes.
struct StageProgram {
  model::ModelConfig config;  // of a rank's part of each layer
  model::ActivationShape shape;
  std::vector<model::ChunkPart> parts;            // one per chunk
  parallel::StepProgram training;                 // empty where nothing is trained
  parallel::StepProgram evaluation;               // forward of as many micro batches
  std::map<int64_t, parallel::StepProgram> ramp;  // training programs of smaller steps, by micro batches
  int64_t document_room = 0;     // maximum number of document bounds per micro batch; 0 if attention uses none
  bool orders_rows = false;      // the rows of a micro batch are put in order for the embedding's backward pass
  bool defers_products = false;  // weight gradients are computed later than the others

  // Of each chunk, for whichever program needs most.
  int64_t slots(size_t chunk) const;
  int64_t stream_buffers() const;
  int64_t batches() const;
  // Of a training step on so many micro batches.
  const parallel::StepProgram& of_step(size_t micro_batches) const;
};

// Programs of some or all stages of a layout, whose orders are found once.
class StagePrograms {
 public:
  explicit StagePrograms(const StageRequest& request);

  StageProgram of_stage(int64_t stage, const std::vector<int64_t>& chunks_of_buckets) const;

 private:
  StageRequest request_;
  std::optional<parallel::StageSchedules> training_;  // absent where nothing is trained
  parallel::StageSchedules evaluation_;
  std::map<int64_t, parallel::StageSchedules> ramp_;
};

}  // namespace megalith::engine
