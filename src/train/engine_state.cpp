#include "train/engine.h"
#include "train/restore.h"

namespace megalith::train {

void Engine::prepare_snapshots(const std::filesystem::path& memory_file) {
  MEGALITH_CHECK(optimizer_ != nullptr, "nothing is trained that could be saved");
  snapshot_ = std::make_unique<StateSnapshot>(
      StateSnapshot::Parts{.request = {.table = table_,
                                       .layout = options_.stage.layout,
                                       .layers = options_.stage.config.layers,
                                       .tied_embeddings = options_.stage.config.tied_embeddings,
                                       .bucket_elements = options_.stage.bucket_elements},
                           .rank = groups_.world == nullptr ? 0 : groups_.world->rank(),
                           .store = store_,
                           .optimizer = *optimizer_,
                           .device = stream_.device(),
                           .memory_file = memory_file});
}

void Engine::restore_weights(checkpoint::Loaded& checkpoint) {
  optimizer_->initialise(stream_);
  train::restore(stream_, checkpoint,
                 {.table = table_, .store = store_, .optimizer = optimizer_.get(), .has_moments = false});
}

void Engine::restore(checkpoint::Loaded& checkpoint) {
  train::restore(stream_, checkpoint, {.table = table_, .store = store_, .optimizer = optimizer_.get()});
}

}  // namespace megalith::train
