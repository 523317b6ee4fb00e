#include "train/fit.h"

#include <optional>

namespace megalith::train {

namespace {

int64_t bytes_of(const model::StageRequest& request) {
  return model::memory_of_worst_rank(request).table.total();
}

// From what costs least time to what costs most: smaller micro batches, then more recomputation, then both.
std::optional<std::string> change_that_fits(const model::StageRequest& request, int64_t available) {
  using model::Recompute;
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    if (recompute < request.config.recompute) continue;
    for (int64_t batch = request.batch; batch >= 1; batch /= 2) {
      if (request.batch % batch != 0) continue;
      model::StageRequest smaller = request;
      smaller.config.recompute = recompute;
      smaller.micro_batches = request.micro_batches * (request.batch / batch);
      smaller.batch = batch;
      if (bytes_of(smaller) > available) continue;
      std::string change;
      if (batch != request.batch) change += fmt::format(" model.micro_batch_size={}", batch);
      if (recompute != request.config.recompute) {
        change += fmt::format(" model.activations_checkpoint_granularity={}",
                              recompute == Recompute::selective ? "selective" : "full");
      }
      return change;
    }
  }
  return std::nullopt;
}

}  // namespace

void require_fit(const model::StageRequest& request, int64_t available) {
  const model::WorstRank worst = model::memory_of_worst_rank(request);
  if (worst.table.total() <= available) return;
  const std::optional<std::string> change = change_that_fits(request, available);
  user_error("the model needs {}, {} are free on the GPU\n{}{}", cost::format_bytes(worst.table.total()),
             cost::format_bytes(available), worst.table.to_text(),
             change ? fmt::format("it would fit with{}", *change)
                    : "no micro batch or recomputation makes it fit: use more GPUs, or a smaller model");
}

}  // namespace megalith::train
