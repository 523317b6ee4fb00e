#include "engine/stage_program.h"

#include "ops/attention.h"
#include "parallel/layer_split.h"

namespace megalith::engine {

using parallel::WeightLife;

WeightLife weight_life(const parallel::Layout& layout) {
  if (layout.optimizer_shards() == 1) return WeightLife::run;
  return layout.shards_weights ? WeightLife::use : WeightLife::step;
}

parallel::Placement place_parameters(const StageRequest& request, const parallel::ParameterTable& table, int64_t stage,
                                     int64_t tensor_rank) {
  return {{.table = table,
           .layout = request.layout,
           .layers = request.config.layers,
           .tied_embeddings = request.config.tied_embeddings,
           .bucket_elements = request.bucket_elements},
          stage,
          tensor_rank};
}

int64_t StageProgram::slots(size_t chunk) const {
  int64_t most = std::max(training.slots.empty() ? 0 : training.slots[chunk], evaluation.slots[chunk]);
  for (const auto& [micro_batches, program] : ramp) most = std::max(most, program.slots[chunk]);
  return most;
}

int64_t StageProgram::stream_buffers() const {
  int64_t most = std::max(training.buffers, evaluation.buffers);
  for (const auto& [micro_batches, program] : ramp) most = std::max(most, program.buffers);
  return most;
}

int64_t StageProgram::batches() const {
  int64_t most = std::max(training.batches, evaluation.batches);
  for (const auto& [micro_batches, program] : ramp) most = std::max(most, program.batches);
  return most;
}

const parallel::StepProgram& StageProgram::of_step(size_t micro_batches) const {
  const auto ramped = ramp.find(static_cast<int64_t>(micro_batches));
  return ramped == ramp.end() ? training : ramped->second;
}

namespace {

// Only cuDNN finds documents by their bounds.
int64_t document_room(const StageRequest& request, const StageProgram& made) {
  const model::ModelConfig& c = made.config;
  const bool has_use = c.masks_documents && c.attention_dropout == 0.0 && c.compute == DType::bf16 &&
                       request.device == Device::cuda && request.layout.context == 1;
  return has_use ? ops::document_room(made.shape.tokens()) : 0;
}

}  // namespace

StagePrograms::StagePrograms(const StageRequest& request)
    : request_(request), evaluation_(parallel::evaluation_stages(request.layout, request.micro_batches)) {
  if (!request.training) return;
  training_ = parallel::pipeline_stages(request.layout, request.micro_batches);
  for (const int64_t micro_batches : request.ramp_micro_batches)
    ramp_.emplace(micro_batches, parallel::pipeline_stages(request.layout, micro_batches));
}

StageProgram StagePrograms::of_stage(int64_t stage, const std::vector<int64_t>& chunks_of_buckets) const {
  const parallel::Layout& layout = request_.layout;
  StageProgram made{.config = model::part_of_layers(request_.config, layout.tensor)};
  // A rank has the front and the back block of each sample that it shares.
  made.shape = {.batch = layout.context > 1 ? 2 * request_.batch : request_.batch,
                .length = layout.context > 1 ? div_exact(request_.length, 2 * layout.context) : request_.length};
  made.shape.rows = layout.sequence_parallel ? div_exact(made.shape.tokens(), layout.tensor) : made.shape.tokens();
  for (int64_t chunk = 0; chunk < layout.chunks; ++chunk) {
    made.parts.push_back({.layers = layers_of(layout, request_.config.layers, {.stage = stage, .chunk = chunk}),
                          .has_embedding = stage == 0 && chunk == 0,
                          .has_head = stage == layout.pipeline - 1 && chunk == layout.chunks - 1});
  }
  const parallel::PipelinePosition position{.stage = stage, .stages = layout.pipeline, .chunks = layout.chunks};
  const WeightLife life = weight_life(layout);
  if (request_.training) {
    // A rank alone has nobody to reduce with.
    const std::vector<int64_t> reduced = layout.world() == 1 ? std::vector<int64_t>{} : chunks_of_buckets;
    const auto program_of = [&](const parallel::StageSchedules& schedules) {
      return make_step_program(with_data_parallel(schedules.of_stage(stage), life, reduced), position);
    };
    made.training = program_of(*training_);
    for (const auto& [micro_batches, schedules] : ramp_) made.ramp.emplace(micro_batches, program_of(schedules));
  }
  made.document_room = document_room(request_, made);
  made.orders_rows = request_.device == Device::cuda && request_.training && made.parts.front().has_embedding;
  made.defers_products = request_.training && layout.schedule == parallel::PipelineSchedule::zero_bubble;
  // Without backward nothing is reduced.
  made.evaluation = make_step_program(with_data_parallel(evaluation_.of_stage(stage), life, {}), position);
  return made;
}

}  // namespace megalith::engine
