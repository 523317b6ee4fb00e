#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/config_options.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "cost/memory.h"
#include "train/bench_step.h"

namespace megalith::cli {

namespace {

struct Options {
  ConfigOptions config;
  train::BenchStepOptions bench;
};

int run_step(const Options& options) {
  const train::BenchStepResult result = train::bench_step(options.config.load(), options.bench);
  const double planned = static_cast<double>(result.planned_bytes);
  std::cout << fmt::format("step             {:.3f} s (median of {})\n", result.step_seconds, options.bench.steps)
            << fmt::format("tokens/s         {:.1f}\n", result.tokens_per_second)
            << fmt::format("GFLOP/s          {:.1f}\n", result.gflops)
            << fmt::format("sgemm GFLOP/s    {:.1f} (a large matrix product in this run)\n", result.sgemm_gflops)
            << fmt::format("share of sgemm   {:.1f} %\n", 100.0 * result.gflops / result.sgemm_gflops)
            << fmt::format("peak memory      {} ({:+.1f} % of the table's {})\n", cost::format_bytes(result.peak_bytes),
                           100.0 * (static_cast<double>(result.peak_bytes) / planned - 1.0),
                           cost::format_bytes(result.planned_bytes));
  return kExitComplete;
}

}  // namespace

void add_bench(CLI::App& program, Action& run) {
  CLI::App* verb = program.add_subcommand("bench", "Measure speed against the machine's own limit.");
  verb->require_subcommand(1);
  add_bench_data(*verb, run);
  CLI::App* step = verb->add_subcommand("step",
                                        "Time training steps on random tokens.\n\n  megalith bench step -c "
                                        "recipes/gpt3-125m.yaml trainer.accelerator=cpu");
  const auto options = std::make_shared<Options>();
  options->config.add_to(*step);
  step->add_option("--steps", options->bench.steps, "timed steps, after one to warm up")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  step->add_option("--micro-batches", options->bench.micro_batches, "per step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  step->callback([options, &run] { run = [options] { return run_step(*options); }; });
}

}  // namespace megalith::cli
