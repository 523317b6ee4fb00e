#include "train/state/rank_state.h"

#include "train/state/restore.h"

namespace megalith::train {

void RankState::prepare_snapshots(const std::filesystem::path& memory_file) {
  MEGALITH_CHECK(engine_.optimizer() != nullptr, "nothing is trained that could be saved");
  const engine::StageRequest& request = engine_.options().stage;
  snapshot_ = std::make_unique<StateSnapshot>(
      StateSnapshot::Parts{.request = {.table = engine_.table(),
                                       .layout = request.layout,
                                       .layers = request.config.layers,
                                       .tied_embeddings = request.config.tied_embeddings,
                                       .bucket_elements = request.bucket_elements},
                           .rank = engine_.groups().world->rank(),
                           .store = engine_.parameters(),
                           .optimizer = *engine_.optimizer(),
                           .histories = engine_.keeps_scales() ? &engine_.precision() : nullptr,
                           .device = engine_.stream().device(),
                           .memory_file = memory_file});
  engine_.set_update_barrier(&snapshot_->copied());
}

void RankState::restore(checkpoint::Loaded& checkpoint) {
  engine_.forget_scales();
  train::restore(engine_.stream(), checkpoint,
                 {.table = engine_.table(), .store = engine_.parameters(), .optimizer = engine_.optimizer()});
  if (restore_histories(engine_.stream(), checkpoint, engine_.precision())) engine_.take_scales_from_history();
}

void RankState::restore_weights(checkpoint::Loaded& checkpoint) {
  engine_.forget_scales();
  engine_.optimizer()->initialise(engine_.stream());
  train::restore(engine_.stream(), checkpoint,
                 {.table = engine_.table(),
                  .store = engine_.parameters(),
                  .optimizer = engine_.optimizer(),
                  .has_moments = false});
}

}  // namespace megalith::train
