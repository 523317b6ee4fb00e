#include "train/batches.h"

#include "core/error.h"

namespace megalith::train {

data::BatcherOptions batcher_options(const config::Run& run, const data::Vocabulary& vocabulary,
                                     const engine::Engine& engine) {
  const config::Data& data = run.model.data;
  if ((data.eod_mask_loss || data.reset_attention_mask || data.reset_position_ids) && vocabulary.eod < 0) {
    user_error(
        "model.data.eod_mask_loss, reset_attention_mask and reset_position_ids need the end-of-document token of {}: "
        "name its files",
        run.model.tokenizer.type);
  }
  return {.global_batch = run.model.global_batch_size,
          .micro_batch = run.model.micro_batch_size,
          .data_rank = engine.place().dp,
          .data_ranks = engine.options().stage.layout.data,
          .eod_mask_loss = data.eod_mask_loss,
          .reset_attention_mask = data.reset_attention_mask,
          .reset_position_ids = data.reset_position_ids,
          .eod = vocabulary.eod};
}

}  // namespace megalith::train
