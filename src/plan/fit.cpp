#include "plan/fit.h"

#include <optional>

#include "core/words.h"
#include "model/parameters.h"

namespace megalith::plan {

namespace {

int64_t bytes_of(const engine::StageRequest& request) {
  return memory_of_worst_rank(request).table.total();
}

// From what costs least time to what costs most: smaller micro batches, then more recomputation, then both.
std::optional<std::string> change_that_fits(const engine::StageRequest& request, int64_t available) {
  using model::Recompute;
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    if (recompute < request.config.recompute) continue;
    for (int64_t batch = request.batch; batch >= 1; batch /= 2) {
      if (request.batch % batch != 0) continue;
      engine::StageRequest smaller = request;
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

// All that a checkpoint holds: weights, masters of bf16 ones, and moments.
int64_t bytes_of_checkpoint(const engine::StageRequest& request) {
  const int64_t per_weight =
      (request.config.compute == DType::bf16 ? size_of(DType::bf16) : 0) + 3 * size_of(DType::f32);
  return model::logical_parameters(request.config).elements() * per_weight;
}

struct Demand {
  MemoryTable table;
  int64_t beside = 0;  // bytes of the table that no change of the config makes smaller
};

[[noreturn]] void refuse(const engine::StageRequest& request, const Demand& demand, int64_t available,
                         const std::string& what_is_free, const char* otherwise) {
  const std::optional<std::string> change = change_that_fits(request, available - demand.beside);
  user_error("the model needs {}, {}\n{}{}", bytes_in_words(demand.table.total()), what_is_free, demand.table.to_text(),
             change
                 ? fmt::format("it would fit with{}", *change)
                 : fmt::format("no micro batch or recomputation makes it fit: use {}, or a smaller model", otherwise));
}

}  // namespace

void require_fit(const engine::StageRequest& request, int64_t available) {
  const Demand demand{.table = memory_of_worst_rank(request).table};
  if (demand.table.total() <= available) return;
  refuse(request, demand, available, bytes_in_words(available) + " are free on the GPU", "more GPUs");
}

void require_fit(const engine::StageRequest& request, const RanksOnHost& ranks, const HostMemory& memory) {
  Demand demand{.table = memory_of_worst_rank(request).table};
  if (ranks.saves) {
    demand.beside = bytes_of_checkpoint(request) / request.layout.world();
    demand.table.rows.push_back({"checkpoint", demand.beside, "a copy of the state while it is written"});
  }
  const int64_t available = memory.available / ranks.ranks;
  if (demand.table.total() <= available) return;
  const std::string shared = ranks.ranks > 1 ? fmt::format(" for each of the {} ranks here", ranks.ranks) : "";
  refuse(request, demand, available,
         fmt::format("{} are free{} ({})", bytes_in_words(available), shared, memory.source),
         "more machines with fewer ranks each");
}

}  // namespace megalith::plan
