#include "plan/describe_layout.h"

#include <fmt/ranges.h>

#include "core/words.h"
#include "cost/flops.h"
#include "model/parameters.h"
#include "parallel/layer_split.h"
#include "parallel/mesh.h"
#include "parallel/placement/placement.h"
#include "plan/run_layout.h"
#include "plan/run_request.h"
#include "plan/step_timeline.h"

namespace megalith::plan {

namespace {

using parallel::Axis;
using parallel::Interval;
using parallel::Layout;
using parallel::Mesh;

// "12", "12-17", "none".
std::string describe(const Interval& interval) {
  if (interval.empty()) return "none";
  if (interval.size() == 1) return std::to_string(interval.begin);
  return fmt::format("{}-{}", interval.begin, interval.end - 1);
}

// "0-5, 48-53": chunk by chunk.
std::string layers_of_stage(const engine::StageRequest& request, int64_t stage) {
  std::vector<std::string> chunks;
  for (int64_t chunk = 0; chunk < request.layout.chunks; ++chunk) {
    chunks.push_back(describe(parallel::layers_of(request.layout, request.config.layers, {stage, chunk})));
  }
  return fmt::format("{}", fmt::join(chunks, ", "));
}

// "3, 7, 11 ... 31 (8 ranks)"
std::string describe(const std::vector<int>& ranks) {
  constexpr size_t kShown = 8;
  if (ranks.size() <= 1) return "alone";
  if (ranks.size() <= kShown) return fmt::format("{}", fmt::join(ranks, ", "));
  return fmt::format("{}, {}, {} ... {} ({} ranks)", ranks[0], ranks[1], ranks[2], ranks.back(), ranks.size());
}

std::string describe_sharing(const Layout& layout) {
  std::string text;
  if (layout.sequence_parallel) text += "; sequence parallel";
  if (layout.optimizer_shards() > 1) text += fmt::format("; optimizer in {} shards", layout.optimizer_shards());
  return text;
}

std::string describe_groups(const engine::StageRequest& request, int rank) {
  const Mesh mesh(request.layout);
  const int64_t kv_replicas = std::max<int64_t>(1, request.layout.tensor / request.config.kv_heads);
  std::string text;
  const auto add = [&](const char* name, const std::vector<int>& ranks) {
    text += fmt::format("  {:<14} {}\n", name, describe(ranks));
  };
  add("tensor", mesh.group_of(rank, {Axis::tp}));
  add("context", mesh.group_of(rank, {Axis::cp}));
  add("same weights", mesh.group_of(rank, {Axis::cp, Axis::dp}));
  add("pipeline", mesh.group_of(rank, {Axis::pp}));
  if (request.config.tied_embeddings) add("embedding", mesh.embedding_group_of(rank));
  if (kv_replicas > 1) add("same kv heads", mesh.neighbours_of(rank, Axis::tp, kv_replicas));
  return text;
}

// What this rank computes in one step.
std::string describe_operations(const StepWork& work) {
  const auto line = [&](const char* name, ops::OpKind kind) {
    const StepWork::Sum sum = work.sum(kind);
    const std::string amount = kind == ops::OpKind::memory ? bytes_in_words(sum.bytes) + " read and written"
                                                           : fmt::format("{:.4e} FLOPs", sum.flops);
    return fmt::format("  {:<14} {:>14}, {}\n", name, counted(sum.calls, "call"), amount);
  };
  return "operations of a step\n" + line("GEMMs", ops::OpKind::product) + line("attention", ops::OpKind::attention) +
         line("others", ops::OpKind::memory);
}

// What this rank puts into the calls of one step.
std::string describe_traffic(const StepWork& work) {
  if (work.traffic.empty()) return {};
  std::string text = "calls of a step\n";
  for (const StepWork::Traffic& sum : work.traffic) {
    text += fmt::format("  {:<14} {:<14} {:>6} of {} ranks, {}\n", sum.group, comm::name_of(sum.operation),
                        with_commas(sum.total.calls), sum.members, bytes_in_words(sum.total.bytes));
  }
  return text;
}

std::string describe_parameters(const engine::StageRequest& request, int rank) {
  const Layout& layout = request.layout;
  const Mesh mesh(layout);
  const parallel::Coordinates place = mesh.coordinates_of(rank);
  const parallel::ParameterTable table = model::logical_parameters(request.config);
  const parallel::Placement placement({.table = table,
                                       .layout = layout,
                                       .layers = request.config.layers,
                                       .tied_embeddings = request.config.tied_embeddings},
                                      place.pp, place.tp);
  int64_t held = 0;
  for (const parallel::PlacedParameter& parameter : placement.parameters()) held += parameter.shape.elements();
  int64_t updated = 0;
  for (const parallel::ShardPiece& piece :
       placement.optimizer_shard(layout.shards_optimizer ? mesh.replica_of(rank) : 0)) {
    updated += piece.local_rows.size() * placement.parameters()[piece.parameter].columns();
  }
  return fmt::format("parameters       {} in {} tensors; updates {} of them\n", with_commas(held),
                     placement.parameters().size(), with_commas(updated));
}

}  // namespace

std::string describe_layout(const engine::StageRequest& request) {
  const Layout& layout = request.layout;
  std::string text =
      fmt::format("layout           {} ranks: {}{}\n", layout.world(), to_string(layout), describe_sharing(layout)) +
      fmt::format("micro batches    {} per step and rank, of {} x {} tokens\n", request.micro_batches, request.batch,
                  request.length) +
      fmt::format("schedule         {}", name_of_schedule(layout));
  if (layout.pipeline == 1) return text + "\n";
  text += fmt::format("; {:.1f} % idle, simulated with backward twice as long as forward\n",
                      100.0 * timeline_of(request).simulation.bubble_fraction());
  text += fmt::format("  {:>5} {:>13} {:>12}  {}\n", "stage", "ranks", "memory", "layers, by chunk");
  const Rehearsal rehearsal(request);
  const int64_t ranks = layout.world() / layout.pipeline;
  for (int64_t stage = 0; stage < layout.pipeline; ++stage) {
    text += fmt::format("  {:>5} {:>13} {:>12}  {}\n", stage, describe(Interval{stage * ranks, (stage + 1) * ranks}),
                        bytes_in_words(rehearsal.memory_of(rehearsal.first_rank_of(stage)).table.total()),
                        layers_of_stage(request, stage));
  }
  return text;
}

std::string describe_rank(const engine::StageRequest& request, int64_t rank) {
  const Layout& layout = request.layout;
  if (rank < 0 || rank >= layout.world()) {
    user_error("there is no rank {}: the run has {}, counted from 0", rank, layout.world());
  }
  const auto number = static_cast<int>(rank);
  const Rehearsal rehearsal(request);
  const StepWork work = rehearsal.work_of(rank);
  const parallel::Coordinates place = Mesh(layout).coordinates_of(number);
  return fmt::format("rank             {} of {}: tensor {} of {}, context {} of {}, data {} of {}, stage {} of {}\n",
                     rank, layout.world(), place.tp, layout.tensor, place.cp, layout.context, place.dp, layout.data,
                     place.pp, layout.pipeline) +
         "works with ranks\n" + describe_groups(request, number) +
         fmt::format("layers           {}\n", layers_of_stage(request, place.pp)) +
         describe_parameters(request, number) + rehearsal.memory_of(rank).table.to_text() + describe_operations(work) +
         describe_traffic(work);
}

std::string describe_model(const config::Run& run, int64_t vocabulary) {
  check_layout(run, vocabulary);
  const engine::StageRequest request = stage_request(run, vocabulary);
  const int64_t padded = request.config.padded_vocabulary;
  std::string text = "parameters       " + with_commas(cost::parameter_count(run.model, vocabulary));
  if (padded > vocabulary) {
    text += fmt::format(" ({} with the vocabulary padded from {} to {})",
                        with_commas(model::logical_parameters(request.config).elements()), vocabulary, padded);
  }
  text += '\n';
  text += fmt::format("FLOPs per sample {:.10e} (causal {:.10e})\n", cost::model_flops_per_sample(run.model, padded),
                      cost::causal_flops_per_sample(run.model, padded));
  const StepFlops step = flops_of_step(request);
  text += fmt::format("FLOPs of a step  {:.4e} in GEMMs, {:.4e} in attention, on all ranks, recompute included\n",
                      step.gemms, step.attention);
  const WorstRank worst = memory_of_worst_rank(request);
  if (request.layout.world() > 1) text += describe_layout(request);
  if (request.layout.pipeline > 1) text += fmt::format("largest rank     of stage {}\n", worst.stage);
  return text + worst.table.to_text();
}

}  // namespace megalith::plan
