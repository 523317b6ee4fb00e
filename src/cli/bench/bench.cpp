#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/accepts.h"
#include "cli/bench/bench_rank.h"
#include "cli/config_options.h"
#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/process/version.h"
#include "core/words.h"
#include "cost/hardware_file.h"
#include "plan/memory_table.h"
#include "plan/wire.h"
#include "train/bench/bench_step.h"

namespace megalith::cli {

namespace {

struct Options {
  ConfigOptions config;
  train::BenchStepOptions bench;
  std::string csv;
  std::string results;
  std::string label;
  std::string as_rank;
  std::string wire;
  std::string hardware;
  bool counts_micro_batches = false;  // the user has said how many
};

int run_as_rank(const Options& options) {
  check_input_file("--hardware", options.hardware);
  check_output_file("--csv", options.csv);
  const cost::Hardware hardware = options.hardware.empty() ? cost::Hardware() : cost::hardware_with(options.hardware);
  const config::Run run = options.config.load();
  const train::RankBenchResult result =
      train::bench_ranks(run, {.ranks = options.as_rank,
                               .wire = plan::find_wire(options.wire, hardware),
                               .micro_batches = options.counts_micro_batches ? options.bench.micro_batches : 0,
                               .steps = options.bench.steps,
                               .warm_up = options.bench.warm_up,
                               .profile = !options.csv.empty()});
  std::cout << describe(run, result);
  if (options.csv.empty()) return kExitComplete;
  const std::vector<train::OpLine> operations = result.operations();
  const double copy_rate = result.copy_bytes_per_second();
  std::cout << train::to_table(operations, copy_rate);
  replace_file(options.csv,
               train::to_csv(operations, copy_rate,
                             {.device = result.device, .driver = result.driver, .program = program_version()}));
  return kExitComplete;
}

std::string against_the_limit(const train::BenchStepResult& result) {
  if (result.device == "cpu") {
    return fmt::format("sgemm GFLOP/s    {:.1f} (a large matrix product in this run)\n",
                       result.sgemm_flops_per_second / 1e9) +
           fmt::format("share of sgemm   {:.1f} %\n", 100.0 * result.flops_per_second / result.sgemm_flops_per_second);
  }
  std::string text;
  if (result.peak_tflops) {
    text += fmt::format("MFU              {:.1f} % of {} TFLOPS\n",
                        result.flops_per_second / *result.peak_tflops / 1e10, *result.peak_tflops);
  }
  if (result.operations.empty()) return text;
  const double kernels = train::sum_of_seconds(result.operations);
  return text +
         fmt::format("floor            {:.2f} ms: {:.1f} % of it reached\n", result.floor_seconds * 1e3,
                     100.0 * result.floor_seconds / result.step_seconds) +
         fmt::format("kernels          {:.2f} ms when each runs alone: {:.1f} % of the step\n", kernels * 1e3,
                     100.0 * kernels / result.step_seconds) +
         fmt::format("copy rate        {:.2f} TB/s, read and written\n", result.copy_bytes_per_second / 1e12);
}

// One line a bench, under one heading.
void append_result(const Options& options, const train::BenchStepResult& result) {
  File file = File::open_for_appending(options.results);
  if (file.size() == 0) {
    file.write(
        "date,label,device,step_ms,tokens_per_second,tflops,mfu_percent,floor_ms,percent_of_floor,memory_gib,"
        "memory_table_gib,first_step_s,loss\n");
  }
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  file.write(fmt::format("{},\"{}\",{},{:.2f},{:.0f},{:.1f},{:.1f},{:.2f},{:.1f},{:.2f},{:.2f},{:.1f},{:.4f}\n",
                         utc_timestamp(wall_seconds()), options.label, result.device, result.step_seconds * 1e3,
                         result.tokens_per_second, result.flops_per_second / 1e12,
                         result.peak_tflops ? result.flops_per_second / *result.peak_tflops / 1e10 : 0.0,
                         result.floor_seconds * 1e3, 100.0 * result.floor_seconds / result.step_seconds,
                         static_cast<double>(result.peak_bytes) / kGiB,
                         static_cast<double>(result.planned_bytes) / kGiB, result.start_seconds, result.loss));
}

int run_step(const Options& options) {
  if (!options.as_rank.empty()) return run_as_rank(options);
  check_output_file("--csv", options.csv);
  check_output_file("--results", options.results);
  const train::BenchStepResult result = train::bench_step(options.config.load(), options.bench);
  const double planned = static_cast<double>(result.planned_bytes);
  std::cout << fmt::format("device           {}\n", result.device)
            << fmt::format("step             {:.2f} ms (median of {})\n", result.step_seconds * 1e3,
                           options.bench.steps)
            << fmt::format("tokens/s         {:.1f}\n", result.tokens_per_second)
            << fmt::format("GFLOP/s          {:.1f} (causal {:.1f})\n", result.flops_per_second / 1e9,
                           result.causal_flops_per_second / 1e9)
            << against_the_limit(result)
            << fmt::format("peak memory      {} ({:.1f} % of the {} that the memory table counts)\n",
                           bytes_in_words(result.peak_bytes), 100.0 * static_cast<double>(result.peak_bytes) / planned,
                           bytes_in_words(result.planned_bytes))
            << fmt::format("first step after {:.1f} s, loss of the last {:.4f}\n", result.start_seconds, result.loss);
  if (!options.results.empty()) append_result(options, result);
  if (result.operations.empty()) return kExitComplete;
  std::cout << train::to_table(result.operations, result.copy_bytes_per_second);
  if (!options.csv.empty()) {
    const train::ProfileOrigin origin{.device = result.device, .driver = result.driver, .program = program_version()};
    replace_file(options.csv, train::to_csv(result.operations, result.copy_bytes_per_second, origin));
  }
  return kExitComplete;
}

}  // namespace

void add_bench(CLI::App& program, Action& run) {
  CLI::App* verb = program.add_subcommand("bench", "Measure speed against the machine's own limit.");
  verb->require_subcommand(1);
  add_bench_checkpoint(*verb, run);
  add_bench_comm(*verb, run);
  add_bench_data(*verb, run);
  CLI::App* step = verb->add_subcommand("step",
                                        "Time training steps on random tokens.\n\n  megalith bench step -c "
                                        "recipes/gpt3-125m.yaml trainer.accelerator=cpu\n  megalith bench step -c "
                                        "recipes/gpt3-175b-dgxc.yaml --as-rank first,middle,last --wire h100");
  const auto options = std::make_shared<Options>();
  options->config.add_to(*step);
  step->add_option("--warm-up", options->bench.warm_up, "steps before the timed ones")
      ->check(at_least(1))
      ->capture_default_str();
  step->add_option("--csv", options->csv, "on a GPU: write the operations to this file, for `megalith plan --rates`");
  CLI::Option* results =
      step->add_option("--results", options->results, "append a line with the numbers to this CSV file");
  step->add_option("--label", options->label, "what that line calls this bench");
  step->add_option("--steps", options->bench.steps, "timed steps")->check(at_least(1))->capture_default_str();
  const CLI::Option* micro_batches = step->add_option("--micro-batches", options->bench.micro_batches,
                                                      "per step; with --as-rank 3 for each pipeline stage")
                                         ->check(at_least(1))
                                         ->capture_default_str();
  CLI::Option* as_rank = step->add_option("--as-rank", options->as_rank,
                                          "measure these ranks of the config's layout, alone on one GPU: numbers, or "
                                          "first, middle and last for a rank of that stage; several with commas")
                             ->type_name("RANK");
  CLI::Option* wire = step->add_option("--wire", options->wire,
                                       "with --as-rank, what its calls go over: an accelerator that `megalith plan` "
                                       "knows (h100), with a network of your choice (h100+roce-8x400), or a file of "
                                       "`megalith bench comm --csv`")
                          ->type_name("NAME|FILE");
  step->add_option("--hardware", options->hardware, "accelerators and networks to add or change (docs/planning.md)")
      ->type_name("FILE")
      ->needs(wire);
  as_rank->needs(wire)->excludes(results);
  wire->needs(as_rank);
  step->callback([options, micro_batches, &run] {
    options->counts_micro_batches = micro_batches->count() > 0;
    run = [options] { return run_step(*options); };
  });
}

}  // namespace megalith::cli
