#include "plan/search/describe_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/words.h"
#include "observe/draw/text_table.h"
#include "observe/draw/wrapped_text.h"
#include "plan/rehearsal.h"
#include "plan/run_request.h"
#include "plan/search/layout_facts.h"
#include "plan/search/preference.h"

namespace megalith::plan {

namespace {

// fp32 master, its bf16 half counted in it, and two moments; bf16 weights beside them.
constexpr double kCheckpointBytes = 14;
// A copy between host and GPU reaches this share of the link.
constexpr double kHostShare = 0.8;

constexpr std::string_view kLegend =
    "t tensor, p pipeline, v chunks (+: embedding and loss count as layers), c context, d data, b micro batch; idle: "
    "bubble and imbalance; tp, cp, pp, dp: exposed communication; ~: within 2 % of the fastest, which the model cannot "
    "tell apart: of these, more free memory comes first, then fewer bytes between nodes, fewer stages, less recompute";
// Of text that no terminal shows.
constexpr size_t kFileWidth = 119;

std::string share(double part, double whole) {
  return fmt::format("{:.1f}", 100 * part / whole);
}

// Where failures come faster than restarts, a run never ends.
std::string or_never(const Price& price, const std::string& text) {
  return price.goodput > 0 ? text : "never";
}

observe::TextRow row_of(const PlannedLayout& layout, const SearchResult& result) {
  const StepParts& p = layout.parts;
  const double step = layout.seconds();
  return {marked_name(layout, result),
          fmt::format("{:.3f}", step),
          with_commas(tokens_of_step(layout.features) / step),
          share(mfu(layout.features, step), 1),
          bytes_in_words(static_cast<double>(layout.memory.total())),
          std::to_string(layout.worst_stage),
          std::string(word_of(layout.candidate.recompute)),
          share(p.bubble + p.imbalance, step),
          share(p.tensor, step),
          share(p.context, step),
          share(p.messages, step),
          share(p.data, step)};
}

std::string describe_gpu(const Cluster& cluster) {
  std::string text = fmt::format("{} {} in {}, {} between nodes", cluster.gpus, cluster.gpu.name,
                                 counted(cluster.nodes(), "node"), cluster.network.name);
  if (cluster.gpu.assumed)
    text += fmt::format("\nunchecked        no published run on {} was fitted: expect errors of 10 to 15 %",
                        cluster.gpu.name);
  if (!cluster.network.checked && cluster.nodes() > 1)
    text += fmt::format("\nunchecked        no published run over {} was fitted", cluster.network.name);
  return text;
}

std::string describe_price(const Price& price, const PlannedLayout& layout, const Circumstances& c) {
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<16} {}\n", name, value);
  };
  line("checkpoint", fmt::format("{}, written in {} beside training",
                                 bytes_in_words(parameters(layout.features.model) * kCheckpointBytes),
                                 duration_in_words(price.write_s)));
  if (std::isfinite(price.between_failures_s)) {
    line("failures",
         fmt::format("one in {} at {:g} per 1000 node-days", duration_in_words(price.between_failures_s), c.failures));
    line("save every", fmt::format("{} ({}), by Young and Daly", counted(price.interval_steps, "step"),
                                   duration_in_words(price.interval_s)));
  }
  line("goodput", fmt::format("{:.2f} %", 100 * price.goodput));
  if (price.goodput <= 0) {
    line("days", "never: the next failure comes before the run has restarted and saved");
    return text;
  }
  line("days",
       fmt::format("{:.2f} for {:.4g} tokens, {} GPU-hours", price.days, c.tokens, with_commas(price.gpu_hours)));
  if (c.price > 0) line("cost", fmt::format("{} at {:g} per GPU-hour", with_commas(price.cost), c.price));
  return text;
}

// Stages that differ: what one micro batch takes on each.
std::string stage_table(const PlannedLayout& layout) {
  const BlockTimes& blocks = layout.times.blocks;
  const int64_t last = layout.features.pipeline - 1;
  std::vector<observe::TextRow> rows;
  std::string before;
  for (int64_t stage = 0; stage <= last; ++stage) {
    const int64_t layers = layout.features.layers_of_stage(stage);
    double seconds = static_cast<double>(layers) * blocks.layer.total();
    if (stage == 0) seconds += blocks.embedding.total();
    if (stage == last) seconds += blocks.head.total();
    const std::string milliseconds = fmt::format("{:.2f}", 1000 * seconds);
    if (milliseconds == before) {
      rows.back()[0] = rows.back()[0].substr(0, rows.back()[0].find('-')) + fmt::format("-{}", stage);
    } else {
      rows.push_back({std::to_string(stage), std::to_string(layers), milliseconds});
    }
    before = milliseconds;
  }
  return observe::plain_table({"stage", "layers", "ms a micro batch"}, rows);
}

// What a rank of the slowest kind of stage puts into collectives in a step.
std::string call_table(const SearchRequest& request, const PlannedLayout& layout) {
  const engine::StageRequest stage =
      stage_request(with_candidate(request.run, request.cluster, layout.candidate), request.vocabulary);
  const Rehearsal rehearsal(stage);
  std::vector<observe::TextRow> rows;
  for (const StepWork::Traffic& calls : rehearsal.work_of(rehearsal.first_rank_of(layout.worst_stage)).traffic) {
    rows.push_back({calls.group, std::string(comm::name_of(calls.operation)), std::to_string(calls.members),
                    with_commas(static_cast<double>(calls.total.calls)),
                    bytes_in_words(static_cast<double>(calls.total.bytes))});
  }
  if (rows.empty()) return {};
  return fmt::format("calls of a rank of stage {} in a step\n", layout.worst_stage) +
         observe::plain_table({"group", "operation", "ranks", "calls", "bytes"}, rows) + "\n";
}

// What was measured, what is assumed, and which constants the rest follows from.
std::string describe_sources(const SearchRequest& request, const OperationTimes& known) {
  const double all = known.all();
  const Rates& rates = request.rates;
  std::string text = fmt::format("rates            {}", fmt::join(rates.files(), ", "));
  if (!rates.origin().device.empty())
    text += fmt::format(": {}, driver {}, {}", rates.origin().device, rates.origin().driver, rates.origin().program);
  text += fmt::format(
      "\noperations       {} % of their time measured on an {}, {} % interpolated, {} % scaled by data sheets\n",
      share(known.measured, all), request.rates_of.name, share(known.interpolated, all), share(known.assumed, all));
  if (request.cluster.wire && request.cluster.wire->measured.empty()) {
    text += fmt::format("calls            as `bench step --as-rank --wire {}` has them; none was measured\n",
                        request.cluster.wire->name);
  } else if (request.cluster.wire) {
    text += fmt::format("calls            as measured in {}\n", request.cluster.wire->name);
  } else {
    text += fmt::format(
        "calls            by data sheets, {:g} GB/s inside and {:g} Gb/s a GPU between nodes; none was measured\n",
        request.cluster.gpu.link_gb_s, request.cluster.network.gbit_per_gpu);
  }
  text += "constants        fitted on published runs (docs/planning.md):";
  for (const char* name : {"link_share", "network_share", "call_latency_s", "network_hop_s", "overlapped_p2p",
                           "visit_s", "memory_share", "jitter"}) {
    for (const NamedConstant& constant : kNamedConstants) {
      if (constant.name == name) text += fmt::format("\n  {:<18} {:.4g}", name, request.constants.*constant.value);
    }
  }
  return text + "\n";
}

}  // namespace

Price price_of(const PlannedLayout& layout, const Cluster& cluster, const Circumstances& circumstances) {
  const double bytes = parameters(layout.features.model) * kCheckpointBytes;
  const double of_rank = bytes / static_cast<double>(cluster.gpus);
  return price_of({.step_s = layout.seconds(),
                   .tokens_of_step = tokens_of_step(layout.features),
                   .gpus = cluster.gpus,
                   .nodes = cluster.nodes(),
                   .checkpoint_bytes = bytes,
                   .checkpoint_copy_s = of_rank / (cluster.gpu.host_gb_s * 1e9 * kHostShare)},
                  circumstances);
}

std::string describe_search(const SearchRequest& request, const SearchResult& result,
                            const Circumstances& circumstances, size_t width) {
  const config::Model& m = request.run.model;
  std::string text = fmt::format(
      "cluster          {}\nbatch            {} samples of {} tokens\nlayouts          {} divide, {} may fit, "
      "{} rehearsed\n",
      describe_gpu(request.cluster), m.global_batch_size, m.encoder_seq_length,
      with_commas(static_cast<double>(result.possible)), with_commas(static_cast<double>(result.in_bound)),
      result.rehearsed);
  observe::TextRow header{"layout", "step s", "tokens/s", "MFU %", "memory", "stage", "recompute",
                          "idle %", "tp %",   "cp %",     "pp %",  "dp %",   "days"};
  if (circumstances.price > 0) header.push_back("cost");
  std::vector<observe::TextRow> rows;
  for (const PlannedLayout& layout : result.best) {
    rows.push_back(row_of(layout, result));
    const Price price = price_of(layout, request.cluster, circumstances);
    rows.back().push_back(or_never(price, fmt::format("{:.2f}", price.days)));
    if (circumstances.price > 0) rows.back().push_back(or_never(price, with_commas(price.cost)));
  }
  text += '\n';
  text += observe::fitting_table(header, rows, width);
  text += observe::wrap_lines(kLegend, static_cast<int64_t>(width > 0 ? width : kFileWidth)) + "\n";
  if (const std::string preference = describe_preference(result); !preference.empty())
    text += fmt::format("{:<16} {}\n", "preferred", preference);
  return text + describe_price(price_of(result.best[0], request.cluster, circumstances), result.best[0], circumstances);
}

std::string explain(const SearchRequest& request, const PlannedLayout& layout, const Circumstances& circumstances) {
  const double step = layout.seconds();
  std::string text = fmt::format(
      "cluster          {}\nlayout           {}\nmicro batches    {} of {} samples, recompute {}\nstep             "
      "{:.4g} s: "
      "{} tokens/s, {:.1f} % MFU\n\n",
      describe_gpu(request.cluster), parallel::to_string(layout.candidate.layout), layout.features.micro_batches(),
      layout.candidate.micro_batch, word_of(layout.candidate.recompute), step,
      with_commas(tokens_of_step(layout.features) / step), 100 * mfu(layout.features, step));
  const OperationTimes& known = layout.times.operations;
  const double all = known.all();
  std::vector<observe::TextRow> rows;
  const auto add_row = [&](std::string name, double seconds) {
    rows.push_back({std::move(name), fmt::format("{:.2f}", 1000 * seconds), share(seconds, step)});
  };
  for (const NamedPart& part : kNamedParts) {
    add_row(std::string(part.name), layout.parts.*part.seconds);
    if (part.seconds != &StepParts::compute) continue;
    add_row("  of it GEMMs", layout.parts.compute * known.gemms / all);
    add_row("  attention", layout.parts.compute * known.attention / all);
    add_row("  bound by memory", layout.parts.compute * known.memory_bound / all);
  }
  rows.push_back({"step", fmt::format("{:.2f}", 1000 * step), "100.0"});
  text += observe::plain_table({"part of a step", "ms", "%"}, rows) + "\n";
  const BlockTimes& blocks = layout.times.blocks;
  rows.clear();
  for (const auto& [name, block] :
       {std::pair{"layer", &blocks.layer}, {"head and loss", &blocks.head}, {"embedding", &blocks.embedding}}) {
    rows.push_back({name, fmt::format("{:.3f}", 1000 * block->forward.total()),
                    fmt::format("{:.3f}", 1000 * block->backward.total()),
                    fmt::format("{:.3f}", 1000 * (block->forward.tensor + block->backward.tensor)),
                    fmt::format("{:.3f}", 1000 * (block->forward.context + block->backward.context))});
  }
  text += observe::plain_table({"of a micro batch, ms", "forward", "backward", "in it: tp", "cp"}, rows) + "\n";
  if (layout.candidate.layout.pipeline > 1) text += stage_table(layout) + "\n";
  if (layout.candidate.layout.pipeline > 1) text += fmt::format("largest rank     of stage {}\n", layout.worst_stage);
  text += layout.memory.to_text() + "\n";
  text += describe_price(price_of(layout, request.cluster, circumstances), layout, circumstances);
  text += '\n';
  text += call_table(request, layout);
  return text + describe_sources(request, known);
}

std::string describe_preference(const SearchResult& result) {
  if (!result.fastest) return {};
  const PlannedLayout& fastest = *result.fastest;
  return fmt::format("for {}; {} is {:.1f} % faster by the model", preferred_for(result.best[0], fastest),
                     short_name(fastest.candidate), 100 * (1 - fastest.seconds() / result.best[0].seconds()));
}

std::string explain_losses(const std::vector<PlannedLayout>& layouts) {
  std::vector<observe::TextRow> rows;
  for (size_t i = 1; i < layouts.size(); ++i) {
    const double all = layouts[i].seconds() - layouts[0].seconds();
    const auto more = [&](const NamedPart& part) {
      return layouts[i].parts.*part.seconds - layouts[0].parts.*part.seconds;
    };
    // Where it is a faster tie, what it is faster by.
    const NamedPart& most =
        *std::max_element(kNamedParts.begin(), kNamedParts.end(), [&](const NamedPart& a, const NamedPart& b) {
          return std::copysign(1.0, all) * more(a) < std::copysign(1.0, all) * more(b);
        });
    rows.push_back({short_name(layouts[i].candidate), fmt::format("{:+.1f}", 1000 * all),
                    fmt::format("{:+.1f}", 1000 * more(most)), std::string(most.name)});
  }
  if (rows.empty()) return {};
  return observe::plain_table({"against the first, ms a step", "all", "most of it", "on"}, rows);
}

std::string compare_clusters(const std::vector<PlannedCluster>& clusters, const Circumstances& circumstances,
                             size_t width) {
  std::vector<observe::TextRow> rows;
  for (const auto& [cluster, best] : clusters) {
    const Price price = price_of(best, cluster, circumstances);
    rows.push_back({fmt::format("{} {}", cluster.gpus, cluster.gpu.name), short_name(best.candidate),
                    fmt::format("{:.3f}", best.seconds()), with_commas(tokens_of_step(best.features) / best.seconds()),
                    share(mfu(best.features, best.seconds()), 1),
                    bytes_in_words(static_cast<double>(best.memory.total())), share(price.goodput, 1),
                    or_never(price, fmt::format("{:.2f}", price.days)), or_never(price, with_commas(price.gpu_hours))});
    if (circumstances.price > 0) rows.back().push_back(or_never(price, with_commas(price.cost)));
  }
  observe::TextRow header{"cluster", "layout",    "step s", "tokens/s", "MFU %",
                          "memory",  "goodput %", "days",   "GPU-hours"};
  if (circumstances.price > 0) header.push_back("cost");
  return observe::fitting_table(header, rows, width);
}

std::string to_yaml(const SearchRequest& request, const SearchResult& result) {
  const PlannedLayout& best = result.best[0];
  const config::Model m = with_candidate(request.run, request.cluster, best.candidate).model;
  std::string text = fmt::format(
      "# megalith plan for {} on {} {}: give it with -c after the recipe.\n# Of {} layouts that divide, {} may fit; {} "
      "were "
      "rehearsed. Predicted: {:.4g} s a step, {:.1f} % MFU, {} on the largest rank.\n",
      request.run.name, request.cluster.gpus, request.cluster.gpu.name, result.possible, result.in_bound,
      result.rehearsed, best.seconds(), 100 * mfu(best.features, best.seconds()),
      bytes_in_words(static_cast<double>(best.memory.total())));
  if (const std::string preference = describe_preference(result); !preference.empty())
    text += fmt::format("# Preferred {}, within its error.\n", preference);
  for (size_t i = 1; i < std::min<size_t>(result.best.size(), 4); ++i)
    text += fmt::format("# Next: {}, {:+.1f} %.\n", short_name(result.best[i].candidate),
                        100 * (result.best[i].seconds() / best.seconds() - 1));
  text += fmt::format("trainer:\n  accelerator: gpu\n  devices: {}\n  num_nodes: {}\n", request.cluster.gpus_per_node(),
                      request.cluster.nodes());
  text += fmt::format(
      "model:\n  tensor_model_parallel_size: {}\n  sequence_parallel: {}\n  pipeline_model_parallel_size: {}\n"
      "  virtual_pipeline_model_parallel_size: {}\n  num_layers_in_first_pipeline_stage: {}\n"
      "  num_layers_in_last_pipeline_stage: {}\n  account_for_embedding_in_pipeline_split: {}\n"
      "  account_for_loss_in_pipeline_split: {}\n  context_parallel_size: {}\n  wrap_with_zero: {}\n  fsdp: {}\n"
      "  micro_batch_size: {}\n  activations_checkpoint_granularity: {}\n",
      m.tensor_model_parallel_size, m.sequence_parallel, m.pipeline_model_parallel_size,
      m.virtual_pipeline_model_parallel_size, m.num_layers_in_first_pipeline_stage, m.num_layers_in_last_pipeline_stage,
      m.account_for_embedding_in_pipeline_split, m.account_for_loss_in_pipeline_split, m.context_parallel_size,
      m.wrap_with_zero, m.fsdp, m.micro_batch_size, word_of(m.activations_checkpoint_granularity));
  return text;
}

}  // namespace megalith::plan
