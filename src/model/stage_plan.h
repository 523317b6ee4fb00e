#pragma once

#include "model/chunk.h"
#include "parallel/data_parallel_actions.h"
#include "parallel/layout.h"
#include "parallel/placement.h"
#include "parallel/step_program.h"

namespace megalith::model {

// What a run asks of its ranks.
struct StageRequest {
  ModelConfig config;
  parallel::Layout layout = {};
  int64_t batch = 0;  // micro batch
  int64_t length = 0;
  int64_t micro_batches = 1;  // per step and data-parallel rank
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

// Everything about the ranks of a pipeline stage that is known before memory is: data that the engine executes and the
// memory plan counts.
struct StagePlan {
  ModelConfig config;  // of a rank's part of each layer
  ActivationShape shape;
  std::vector<ChunkPart> parts;      // one per chunk
  parallel::StepProgram training;    // empty where nothing is trained
  parallel::StepProgram evaluation;  // forward of as many micro batches

  // Of each chunk, for whichever program needs more.
  int64_t slots(size_t chunk) const;
  int64_t stream_buffers() const { return std::max(training.buffers, evaluation.buffers); }
  int64_t batches() const { return std::max(training.batches, evaluation.batches); }
};

// Plans of some or all stages of a layout, whose schedules are made once.
class StagePlans {
 public:
  explicit StagePlans(const StageRequest& request);

  StagePlan of_stage(int64_t stage, const std::vector<int64_t>& chunks_of_buckets) const;

 private:
  StageRequest request_;
  std::vector<parallel::Schedule> training_;
  std::vector<parallel::Schedule> evaluation_;
};

}  // namespace megalith::model
