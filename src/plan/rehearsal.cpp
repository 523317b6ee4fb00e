#include "plan/rehearsal.h"

#include <algorithm>
#include <map>

#include "comm/shadow/shadow_world.h"
#include "core/words.h"
#include "parallel/schedule/schedule.h"

namespace megalith::plan {

namespace {

// Resident before and beside the arenas, measured on the release build: code and heap of the program, and one packing
// buffer of OpenBLAS per thread.
constexpr int64_t kProgramBytes = int64_t{24} << 20;
constexpr int64_t kBytesPerThread = int64_t{16} << 20;
// CUDA context, cuBLAS and cuDNN handles.
constexpr int64_t kGpuBytes = int64_t{1} << 30;

int64_t bytes_outside(const engine::StageRequest& request) {
  return request.device == Device::cpu ? kProgramBytes + request.threads * kBytesPerThread : kGpuBytes;
}

MemoryTable table_of(const engine::StageRequest& request, const engine::StageProgram& program,
                     const engine::ArenaSizes& sizes) {
  const DType compute = request.config.compute;
  const DType main = main_dtype(compute);
  MemoryTable table;
  const auto add = [&](const char* arena, int64_t bytes, std::string holds) {
    table.rows.push_back({arena, bytes, std::move(holds)});
  };
  add("weights", sizes.weights, std::string(name_of(compute)));
  if (request.training) {
    add("gradients", sizes.gradients, std::string(name_of(main)));
    add("master weights", sizes.masters,
        compute == DType::bf16 ? "what bf16 weights lack of fp32" : "the weights themselves");
    add("optimizer", sizes.optimizer, "scalars, and where each piece of a parameter lies");
    add("moments", sizes.moments, "Adam, two per weight");
  }
  if (sizes.fp8 > 0) add("fp8", sizes.fp8, "copies of weights, scales and their histories");
  int64_t layers = 0;
  int64_t most_slots = 0;
  int64_t deferred = 0;
  for (size_t chunk = 0; chunk < program.parts.size(); ++chunk) {
    const int64_t slots = program.slots(chunk);
    layers += program.parts[chunk].layers.size();
    most_slots = std::max(most_slots, slots);
    if (!sizes.deferred.empty()) deferred += slots * sizes.deferred[chunk];
  }
  add("activations", sizes.activations,
      fmt::format("{}, {} micro batch{} of {} x {} tokens", counted(layers, "layer"), most_slots,
                  most_slots == 1 ? "" : "es", program.shape.batch, program.shape.length));
  if (program.defers_products) add("deferred products", deferred, "what later weight gradients read");
  if (sizes.reduction > 0) add("reduction", sizes.reduction, "gradients on their way");
  add("scratch", sizes.scratch, "the largest operation's");
  add("batch", sizes.batch, "token ids, positions, weights, losses, scalars");
  add(kOutsideArenas, bytes_outside(request), "program and libraries");
  return table;
}

}  // namespace

data::MicroBatch example_batch(const engine::StageRequest& request, Documents documents) {
  const auto tokens = static_cast<size_t>(request.batch * request.length);
  data::MicroBatch example{.batch = request.batch, .length = request.length};
  example.inputs.resize(tokens);
  example.targets.resize(tokens);
  example.weights.resize(tokens);
  example.sample_ids.resize(static_cast<size_t>(request.batch));
  if (!request.config.masks_documents) return example;
  example.document_starts.resize(tokens);
  if (documents == Documents::one_a_token) {
    for (size_t i = 0; i < tokens; ++i)
      example.document_starts[i] = static_cast<int32_t>(i % static_cast<size_t>(request.length));
  }
  return example;
}

Rehearsal::Rehearsal(const engine::StageRequest& request) : request_(request), programs_(request) {}

RankMemory Rehearsal::memory_of(int64_t rank) const {
  const auto world =
      comm::make_shadow_world(static_cast<int>(rank), static_cast<int>(request_.layout.world()), request_.device);
  engine::Engine engine({.stage = request_}, *world, programs_);
  engine.rehearse(example_batch(request_, Documents::one_a_sample));
  if (engine.program().document_room > 0) engine.rehearse(example_batch(request_, Documents::one_a_token));
  const engine::ArenaSizes arenas = engine.sizes();
  return {.arenas = arenas, .table = table_of(request_, engine.program(), arenas)};
}

StepWork Rehearsal::work_of(int64_t rank) const {
  std::map<std::pair<std::string, comm::Operation>, StepWork::Traffic> traffic;
  const auto world = comm::make_shadow_world(static_cast<int>(rank), static_cast<int>(request_.layout.world()),
                                             request_.device, [&](const comm::ShadowCall& call) {
                                               StepWork::Traffic& sum = traffic[{call.group, call.operation}];
                                               sum.group = call.group;
                                               sum.members = call.members;
                                               sum.operation = call.operation;
                                               sum.total.calls += 1;
                                               sum.total.bytes += call.bytes;
                                             });
  engine::Engine engine({.stage = request_}, *world, programs_);
  std::map<std::pair<std::string, std::string>, StepWork::Operation> operations;
  const ops::OpObservation observation(engine.stream(), [&](const ops::OpCall& call) {
    StepWork::Operation& sum = operations[{call.name, call.cost.shape}];
    if (sum.calls++ == 0) {
      sum.name = call.name;
      sum.cost = call.cost;
    }
  });
  const data::MicroBatch example = example_batch(request_, Documents::one_a_sample);
  engine.run_step({}, {example, static_cast<size_t>(request_.micro_batches)});
  StepWork work;
  for (auto& [key, operation] : operations) work.operations.push_back(std::move(operation));
  for (auto& [key, sum] : traffic) work.traffic.push_back(std::move(sum));
  return work;
}

StepWork::Sum StepWork::sum(ops::OpKind kind) const {
  Sum sum;
  for (const Operation& operation : operations) {
    if (operation.cost.kind != kind) continue;
    const auto calls = static_cast<double>(operation.calls);
    sum.calls += operation.calls;
    sum.flops += operation.cost.flops * calls;
    sum.bytes += operation.cost.bytes * calls;
  }
  return sum;
}

RankMemory memory_of_rank(const engine::StageRequest& request, int64_t rank) {
  return Rehearsal(request).memory_of(rank);
}

MemoryTable memory_of_stage(const engine::StageRequest& request, int64_t stage) {
  const Rehearsal rehearsal(request);
  return rehearsal.memory_of(rehearsal.first_rank_of(stage)).table;
}

// The ranks of a stage compute alike, and each micro batch costs the same: as many as fill the pipeline are enough.
StepFlops flops_of_step(const engine::StageRequest& request) {
  engine::StageRequest fewer = request;
  if (parallel::schedule_problem(request.layout, request.layout.pipeline).empty())
    fewer.micro_batches = std::min(request.micro_batches, request.layout.pipeline);
  fewer.ramp_micro_batches.clear();
  const Rehearsal rehearsal(fewer);
  const double share = static_cast<double>(request.layout.world() / request.layout.pipeline) *
                       (static_cast<double>(request.micro_batches) / static_cast<double>(fewer.micro_batches));
  StepFlops flops;
  for (int64_t stage = 0; stage < request.layout.pipeline; ++stage) {
    const StepWork work = rehearsal.work_of(rehearsal.first_rank_of(stage));
    flops.gemms += share * work.sum(ops::OpKind::product).flops;
    flops.attention += share * work.sum(ops::OpKind::attention).flops;
  }
  return flops;
}

WorstRank memory_of_worst_rank(const engine::StageRequest& request) {
  const Rehearsal rehearsal(request);
  WorstRank worst{.stage = 0, .table = rehearsal.memory_of(0).table};
  for (int64_t stage = 1; stage < request.layout.pipeline; ++stage) {
    MemoryTable table = rehearsal.memory_of(rehearsal.first_rank_of(stage)).table;
    if (table.total() > worst.table.total()) worst = {stage, std::move(table)};
  }
  return worst;
}

}  // namespace megalith::plan
