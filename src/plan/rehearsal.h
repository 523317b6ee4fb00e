#pragma once

#include "engine/engine.h"
#include "ops/op.h"
#include "plan/memory_table.h"

namespace megalith::plan {

// What a rank computes with: the peaks of its arenas over training and evaluation, whatever its micro batches hold.
struct RankMemory {
  engine::ArenaSizes arenas;
  MemoryTable table;
};

// What a rank does in one training step, each kind of operation and call once.
struct StepWork {
  struct Operation {
    std::string name;
    ops::OpCost cost;  // of one call
    int64_t calls = 0;
  };
  struct Traffic {
    std::string group;
    int members = 1;
    comm::Operation operation = comm::Operation::barrier;
    comm::Traffic total;
  };
  std::vector<Operation> operations;
  std::vector<Traffic> traffic;

  // Of all operations of a kind.
  struct Sum {
    int64_t calls = 0;
    double flops = 0.0;
    double bytes = 0.0;
  };
  Sum sum(ops::OpKind kind) const;
};

// Ranks of a layout before they run: the engine itself, on shadows. Nothing is allocated and nothing computed; the
// schedules of all stages are made once.
class Rehearsal {
 public:
  explicit Rehearsal(const engine::StageRequest& request);

  RankMemory memory_of(int64_t rank) const;
  // Of a step on micro batches of one document each.
  StepWork work_of(int64_t rank) const;
  // The first rank of a pipeline stage; all of a stage need the same, or a little less.
  int64_t first_rank_of(int64_t stage) const { return stage * (request_.layout.world() / request_.layout.pipeline); }

 private:
  engine::StageRequest request_;
  engine::StagePrograms programs_;
};

// A micro batch as a run may meet it, for rehearsals: each sample is one document, or each token is.
enum class Documents { one_a_sample, one_a_token };
data::MicroBatch example_batch(const engine::StageRequest& request, Documents documents);

RankMemory memory_of_rank(const engine::StageRequest& request, int64_t rank);
MemoryTable memory_of_stage(const engine::StageRequest& request, int64_t stage);

// What all ranks compute in one training step, recompute included.
struct StepFlops {
  double gemms = 0.0;
  double attention = 0.0;  // what the causal mask leaves, the scores of backward included
};
StepFlops flops_of_step(const engine::StageRequest& request);

struct WorstRank {
  int64_t stage = 0;
  MemoryTable table;
};
WorstRank memory_of_worst_rank(const engine::StageRequest& request);

}  // namespace megalith::plan
