#include "cli/plan/plan_layouts.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <cmath>
#include <iostream>
#include <memory>
#include <sstream>

#include "cli/paths.h"
#include "cli/plan/nearest_plan.h"
#include "cli/verbs.h"
#include "config/derived.h"
#include "config/load.h"
#include "config/scalar.h"
#include "config/validate.h"
#include "core/error.h"
#include "core/file.h"
#include "core/words.h"
#include "cost/hardware_file.h"
#include "data/tokenizer/tokenizer.h"
#include "observe/draw/wrapped_text.h"
#include "observe/sinks/console.h"
#include "plan/check_run.h"
#include "plan/rehearsal.h"
#include "plan/run_request.h"
#include "plan/search/describe_search.h"
#include "plan/search/plan_page.h"
#include "plan/wire.h"

namespace megalith::cli {

namespace {

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

using plan::PlannedLayout;
using plan::SearchRequest;
using plan::SearchResult;

// Of the terminal; 0 where there is none.
size_t columns_of_text() {
  return ::isatty(STDOUT_FILENO) == 1 ? static_cast<size_t>(observe::terminal_width(STDOUT_FILENO)) : 0;
}

void print(const std::string& text) {
  const size_t columns = columns_of_text();
  std::cout << (columns > 0 ? observe::wrap_lines(text, static_cast<int64_t>(columns)) : text);
}

constexpr int64_t kMostGpus = int64_t{1} << 20;

// Keys of the command line keep their values.
std::set<std::string> pinned_keys(const std::vector<std::string>& overrides) {
  std::set<std::string> keys;
  for (const std::string& text : overrides) {
    std::string key = text.substr(0, text.find('='));
    if (key.starts_with("+")) key.erase(0, 1);
    if (key.starts_with("training.")) key.erase(0, std::string("training.").size());
    keys.insert(key);
  }
  return keys;
}

plan::Cluster cluster_of(const PlanLayoutsOptions& options, const cost::Hardware& hardware, const std::string& gpu,
                         int64_t gpus) {
  const cost::Accelerator& accelerator = hardware.accelerator(gpu);
  if (gpus > accelerator.per_node && gpus % accelerator.per_node != 0) {
    const int64_t below = gpus / accelerator.per_node * accelerator.per_node;
    user_error("{} GPUs are no whole nodes of {} {}: use {} or {}", gpus, accelerator.per_node, gpu, below,
               below + accelerator.per_node);
  }
  plan::Cluster cluster{.gpu = accelerator,
                        .network = hardware.network(options.network.empty() ? accelerator.network : options.network),
                        .gpus = gpus};
  if (options.wire.empty()) return cluster;
  const std::vector<std::string> wires = parts_of(options.wire);
  cluster.wire = std::make_shared<const comm::Wire>(wires.size() == 1 ? plan::find_wire(wires[0], hardware)
                                                                      : plan::read_wires(wires));
  if (!cluster.wire->measured.empty() && cluster.nodes() > 1 && cluster.wire->ranks_per_machine != accelerator.per_node)
    user_error("{}: measured with up to {} ranks on a machine, and nodes of {} have {}: measure all of a node's",
               cluster.wire->name, cluster.wire->ranks_per_machine, gpu, accelerator.per_node);
  return cluster;
}

void require_planned_precision(const config::Run& run, const cost::Accelerator& gpu) {
  if (config::compute_dtype(run.trainer) != DType::bf16)
    user_error("plan knows the speed of bf16 and fp8, and the config asks for {}: give trainer.precision=bf16",
               name_of(config::compute_dtype(run.trainer)));
  if (run.model.fp8 && !gpu.fp8_tflops) user_error("{} has no fp8: give model.fp8=false", gpu.name);
}

std::vector<int64_t> numbers_of_gpus(const PlanLayoutsOptions& options, const config::Run& run) {
  if (options.gpus.empty()) return {config::world_size(run.trainer)};
  std::vector<int64_t> numbers;
  for (const std::string& text : parts_of(options.gpus)) {
    const auto gpus = config::read_int(text);
    if (!gpus || *gpus < 1 || *gpus > kMostGpus)
      user_error("--gpus: '{}' is not a number of GPUs, 1 to {}", text, kMostGpus);
    numbers.push_back(*gpus);
  }
  return numbers;
}

// Files of rates are of the GPU that is planned for.
void use_rates(const PlanLayoutsOptions& options, const cost::Accelerator& gpu, SearchRequest& request) {
  if (options.rates.empty()) return;
  request.rates = {};
  for (const std::string& file : parts_of(options.rates)) request.rates.add(read_text(file), file);
  const cost::Accelerator* measured_on = cost::find_accelerator(request.rates.origin().device);
  if (measured_on != nullptr && measured_on->name != gpu.name)
    user_error("{} was measured on an {}, and the plan is for {}: give --gpu {}, or rates of {}",
               fmt::format("{}", fmt::join(request.rates.files(), ", ")), request.rates.origin().device, gpu.name,
               measured_on->name, gpu.name);
  request.rates_of = gpu;
}

void write_files(const PlanLayoutsOptions& options, const SearchRequest& request, const SearchResult& result) {
  if (!options.write.empty()) replace_file(options.write, plan::to_yaml(request, result));
  if (!options.html.empty()) replace_file(options.html, plan::plan_page(request, result, options.circumstances));
}

void plan_own_layout(const PlanLayoutsOptions& options, const SearchRequest& request) {
  const SearchResult result{.possible = 1, .in_bound = 1, .rehearsed = 1, .best = {plan::plan_as_is(request)}};
  print(plan::explain(request, result.best[0], options.circumstances));
  if (result.best[0].memory.total() > plan::usable_bytes(request.cluster.gpu, request.headroom))
    refuse_own_layout(request, result.best[0]);
  write_files(options, request, result);
}

void plan_search(const PlanLayoutsOptions& options, const SearchRequest& request, const SearchResult& result) {
  if (result.best.empty()) refuse(request, result);
  print(plan::describe_search(request, result, options.circumstances, columns_of_text()));
  if (options.explain) {
    print("\n" + plan::explain(request, result.best[0], options.circumstances));
    print("\n" + plan::explain_losses(result.best));
  }
  write_files(options, request, result);
}

// Each cluster by itself, then all in one table. One on which nothing works says why and does not end the others.
void plan_clusters(const PlanLayoutsOptions& options, SearchRequest request,
                   const std::vector<plan::Cluster>& clusters) {
  std::vector<plan::PlannedCluster> planned;
  for (const plan::Cluster& cluster : clusters) {
    request.cluster = cluster;
    use_rates(options, cluster.gpu, request);
    try {
      SearchResult result = plan::search_layouts(request);
      plan_search(options, request, result);
      planned.push_back({cluster, std::move(result.best[0])});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::user) throw;
      std::cout << fmt::format("cluster          {} {}: {}\n", cluster.gpus, cluster.gpu.name, error.what());
    }
    std::cout << '\n';
  }
  if (planned.empty()) user_error("on none of these clusters a layout works: above is what would");
  print(plan::compare_clusters(planned, options.circumstances, columns_of_text()));
}

// Doubles the GPUs until the days are enough, then halves the step.
int plan_deadline(const PlanLayoutsOptions& options, SearchRequest request) {
  request.shown = 1;
  const int64_t node = request.cluster.gpu.per_node;
  const auto days_on = [&](int64_t gpus) {
    request.cluster.gpus = gpus;
    const SearchResult result = plan::search_layouts(request);
    return result.best.empty() ? INFINITY : plan::price_of(result.best[0], request.cluster, options.circumstances).days;
  };
  for (int64_t gpus = node; gpus <= int64_t{1} << 17; gpus *= 2) {
    if (days_on(gpus) > options.deadline_days) continue;
    int64_t enough = gpus;
    for (const int64_t between : {gpus * 5 / 8, gpus * 6 / 8, gpus * 7 / 8}) {
      if (enough == gpus && between % node == 0 && days_on(between) <= options.deadline_days) enough = between;
    }
    std::cout << fmt::format("{} {} take {:.2f} days, with goodput, for {:.4g} tokens\n", enough,
                             request.cluster.gpu.name, days_on(enough), options.circumstances.tokens);
    return kExitComplete;
  }
  user_error(
      "no number of {} up to {} trains {:.4g} tokens in {:g} days with a batch of {}: give more days or a larger batch",
      request.cluster.gpu.name, int64_t{1} << 17, options.circumstances.tokens, options.deadline_days,
      request.run.model.global_batch_size);
}

}  // namespace

int plan_check(const PlanLayoutsOptions& options) {
  check_input_file("--hardware", options.hardware.string());
  const cost::Hardware hardware = options.hardware.empty() ? cost::Hardware() : cost::hardware_with(options.hardware);
  const observe::RunHistory history = observe::read_run_history(options.check);
  if (history.config.empty()) user_error("{} has no hparams.yaml: give the directory of a run", options.check.string());
  config::Run run =
      config::load(std::vector<config::Source>{{"hparams.yaml", history.config}}, options.config.overrides);
  config::validate(run);
  const int64_t vocabulary = data::vocabulary_of(run.model.tokenizer).size;
  // A run on GPUs says on which.
  const bool on_gpus = run.trainer.accelerator == config::Accelerator::gpu || !history.accelerator.empty();
  run.trainer.accelerator = on_gpus ? config::Accelerator::gpu : config::Accelerator::cpu;
  const plan::MemoryTable memory = plan::memory_of_rank(plan::stage_request(run, vocabulary), 0).table;
  if (!on_gpus) {
    std::cout << fmt::format("{} on {} of CPUs: plan knows the speed of GPUs alone, so only memory is compared\n\n",
                             run.name, counted(config::world_size(run.trainer), "rank"))
              << plan::compare_memory(memory, history);
    return kExitComplete;
  }
  const cost::Accelerator* known = cost::find_accelerator(history.accelerator);
  const std::string gpu = known != nullptr ? known->name : options.gpu;
  require_planned_precision(run, hardware.accelerator(gpu));
  SearchRequest request{.run = run,
                        .vocabulary = vocabulary,
                        .cluster = cluster_of(options, hardware, gpu, config::world_size(run.trainer))};
  use_rates(options, hardware.accelerator(gpu), request);
  const PlannedLayout predicted = plan::plan_as_is(request);
  const plan::Price price = plan::price_of(predicted, request.cluster, options.circumstances);
  std::cout << fmt::format("{} on {} {}{}\n\n", run.name, request.cluster.gpus, gpu,
                           known != nullptr ? "" : " (the logs do not say which GPU: as --gpu has it)")
            << plan::compare_with_run(predicted, price.stall_s, memory, history);
  return kExitComplete;
}

int plan_layouts(const PlanLayoutsOptions& given) {
  PlanLayoutsOptions options = given;
  check_output_file("--write", options.write.string());
  check_output_file("--html", options.html.string());
  check_input_file("--hardware", options.hardware.string());
  for (const std::string& file : parts_of(options.rates)) check_input_file("--rates", file);
  const std::vector<std::string> wires = parts_of(options.wire);
  const bool names_wire = wires.size() == 1 && !wires[0].ends_with(".csv") && wires[0].find('/') == std::string::npos;
  for (const std::string& file : wires) {
    if (!names_wire) check_input_file("--wire", file);
  }
  const cost::Hardware hardware = options.hardware.empty() ? cost::Hardware() : cost::hardware_with(options.hardware);
  const config::Run run = options.config.load();
  const std::vector<int64_t> numbers = numbers_of_gpus(options, run);
  const std::vector<std::string> kinds = parts_of(options.gpu);
  if (kinds.empty()) user_error("--gpu is empty: give an accelerator, such as h100");
  const bool several = numbers.size() * kinds.size() > 1;
  if (several && !(options.write.empty() && options.html.empty()))
    user_error("--write and --html are for one number of GPUs of one kind");
  if (options.circumstances.tokens == 0)
    options.circumstances.tokens = static_cast<double>(run.trainer.max_steps) *
                                   static_cast<double>(run.model.global_batch_size * run.model.encoder_seq_length);
  SearchRequest request{.run = run,
                        .vocabulary = data::vocabulary_of(run.model.tokenizer).size,
                        .pinned = pinned_keys(options.config.overrides),
                        .headroom = options.headroom,
                        .most_tensor = options.most_tensor,
                        .shown = static_cast<size_t>(options.shown),
                        .finds_front = !options.html.empty()};
  for (const std::string& gpu : kinds) require_planned_precision(run, hardware.accelerator(gpu));
  if (options.deadline_days > 0) {
    for (const std::string& gpu : kinds) {
      use_rates(options, hardware.accelerator(gpu), request);
      request.cluster = cluster_of(options, hardware, gpu, hardware.accelerator(gpu).per_node);
      plan_deadline(options, request);
    }
    return kExitComplete;
  }
  std::vector<plan::Cluster> clusters;
  for (const std::string& gpu : kinds) {
    for (const int64_t gpus : numbers) clusters.push_back(cluster_of(options, hardware, gpu, gpus));
  }
  if (several && !options.as_is) {
    plan_clusters(options, request, clusters);
    return kExitComplete;
  }
  for (const plan::Cluster& cluster : clusters) {
    request.cluster = cluster;
    use_rates(options, cluster.gpu, request);
    if (options.as_is) {
      plan_own_layout(options, request);
    } else {
      plan_search(options, request, plan::search_layouts(request));
    }
    if (several) std::cout << '\n';
  }
  return kExitComplete;
}

}  // namespace megalith::cli
