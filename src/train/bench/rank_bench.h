#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/emulated/emulated_world.h"
#include "config/run_config.h"
#include "engine/engine.h"
#include "plan/measured_step.h"
#include "train/bench/op_profile.h"

namespace megalith::train {

struct RankBenchOptions {
  std::string ranks;  // "first,middle,last", or ranks of the layout
  comm::Wire wire;
  int64_t micro_batches = 0;  // of the shortened steps; 0: three for each stage
  int64_t steps = 3;          // timed, after `warm_up` that are not
  int64_t warm_up = 1;
  bool profile = false;  // each operation alone, too
};

// One rank of a layout, measured without the others.
struct MeasuredRank {
  int rank = 0;
  plan::MeasuredStage times;  // all calls on the wire; messages are there at once
  // The same with calls of one kind that take no time: "tensor", "context", "data". Only those that the layout has.
  std::map<std::string, plan::MeasuredStage> without = {};
  double step_seconds = 0.0;  // of a shortened step whose messages are there at once
  double host_seconds = 0.0;  // in which the host asked for it
  // Of a shortened step whose messages arrive as they were simulated to, until its last action has ended.
  double arrived_seconds = 0.0;
  double simulated_seconds = 0.0;  // what the simulation says of that
  int64_t planned_bytes = 0;       // the memory table's total
  int64_t peak_bytes = 0;          // what the driver saw in use; 0 on the CPU
  // Of a shortened step, each operation alone; where the options ask for it.
  std::vector<OpLine> operations = {};
  double copy_bytes_per_second = 0.0;
};

// Where the time of a step goes; the parts add up.
struct StepShares {
  double compute = 0.0;
  double tensor = 0.0;  // exposed calls
  double context = 0.0;
  double data = 0.0;
  double idle = 0.0;    // the pipeline's bubble, and messages
  double update = 0.0;  // of weights, and what else begins and ends a step

  double total() const { return compute + tensor + context + data + idle + update; }
};

struct RankBenchResult {
  std::string device;
  std::string driver;
  std::string wire;
  int64_t micro_batches = 0;       // of the shortened steps
  int64_t step_micro_batches = 0;  // of the run's
  std::vector<MeasuredRank> ranks;
  plan::MeasuredStep step;  // of the run
  StepShares shares;
  double tokens_per_second = 0.0;  // of all ranks
  double flops_per_second = 0.0;   // model FLOPs, of one rank
  double seconds = 0.0;            // that the bench took
  std::optional<double> peak_tflops;

  // Of all ranks: calls added up, and the mean of what a call of each shape took.
  std::vector<OpLine> operations() const;
  double copy_bytes_per_second() const;  // of the first rank
};

// Measures ranks of the run's layout on this machine's GPU, one after the other. User errors: ranks that the layout has
// not, one that does not fit the card, a wire without a link that the layout needs, no GPU.
RankBenchResult bench_ranks(const config::Run& run, const RankBenchOptions& options);

// The ranks that are meant: "first", "middle" and "last" are the first ranks of those stages. A user error for others.
std::vector<int> ranks_named(const parallel::Layout& layout, const std::string& names);

// What messages bring: activations of size 1 from the stage before, and gradients of the size that a loss over so many
// tokens has, from the stage behind.
double message_scale(const comm::Group& pipeline, int peer, int64_t tokens);

// Measures the world's rank, on the world's device. `engine_options`: of the whole run; `memory`: of the rank with as
// many micro batches as `options` says.
MeasuredRank measure_rank(const config::Run& run, engine::EngineOptions engine_options, comm::EmulatedWorld& world,
                          const RankBenchOptions& options);

// Of the run's step, from what its ranks measured.
StepShares shares_of(const engine::StageRequest& request, const comm::Wire& wire,
                     const std::vector<MeasuredRank>& ranks);

}  // namespace megalith::train
