#include "model/stage_plan.h"

#include "parallel/layer_split.h"

namespace megalith::model {

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

int64_t StagePlan::slots(size_t chunk) const {
  return std::max(training.slots.empty() ? 0 : training.slots[chunk], evaluation.slots[chunk]);
}

StagePlans::StagePlans(const StageRequest& request)
    : request_(request), evaluation_(parallel::evaluation_schedules(request.layout, request.micro_batches)) {
  if (request.training) training_ = parallel::pipeline_schedules(request.layout, request.micro_batches);
}

StagePlan StagePlans::of_stage(int64_t stage, const std::vector<int64_t>& chunks_of_buckets) const {
  const parallel::Layout& layout = request_.layout;
  StagePlan plan{.config = part_of_layers(request_.config, layout.tensor)};
  // A rank has the front and the back block of each sample that it shares.
  plan.shape = {.batch = layout.context > 1 ? 2 * request_.batch : request_.batch,
                .length = layout.context > 1 ? div_exact(request_.length, 2 * layout.context) : request_.length};
  plan.shape.rows = layout.sequence_parallel ? div_exact(plan.shape.tokens(), layout.tensor) : plan.shape.tokens();
  for (int64_t chunk = 0; chunk < layout.chunks; ++chunk) {
    plan.parts.push_back({.layers = layers_of(layout, request_.config.layers, {.stage = stage, .chunk = chunk}),
                          .has_embedding = stage == 0 && chunk == 0,
                          .has_head = stage == layout.pipeline - 1 && chunk == layout.chunks - 1});
  }
  const parallel::StagePlace place{.stage = stage, .stages = layout.pipeline, .chunks = layout.chunks};
  const auto number = static_cast<size_t>(stage);
  const WeightLife life = weight_life(layout);
  if (request_.training) {
    plan.training = make_step_program(with_data_parallel(training_[number], life, chunks_of_buckets), place);
  }
  // Without backward nothing is reduced.
  plan.evaluation = make_step_program(with_data_parallel(evaluation_[number], life, {}), place);
  return plan;
}

}  // namespace megalith::model
