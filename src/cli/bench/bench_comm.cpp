#include "comm/bench_comm.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/accepts.h"
#include "cli/paths.h"
#include "cli/rank_options.h"
#include "cli/verbs.h"
#include "config/run_config.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "launch/ranks/boot.h"
#include "launch/ranks/self.h"
#include "plan/run_request.h"

namespace megalith::cli {

namespace {

struct Options {
  RankOptions ranks;
  config::Trainer trainer;
  comm::CommBench bench;
  std::string csv;
};

int run_comm(const Options& options) {
  check_output_file("--csv", options.csv);
  const Device device = plan::device_of(options.trainer);
  if (options.ranks.launches()) {
    return launch::launch_self({.ranks = options.ranks.nproc, .place = launch::launch_place(), .device = device});
  }
  if (launch::started_ranks() == 1) {
    user_error("there is one rank, and nobody to talk to: give --nproc N, or start several with a launcher");
  }
  const double begin = monotonic_seconds();
  launch::Boot boot({.device = device,
                     .start_timeout = options.trainer.start_timeout,
                     .communication_timeout = options.trainer.communication_timeout});
  {
    ThreadPool pool(1);
    Stream stream(pool, device);
    const auto group = boot.world().make_world_group();
    group->barrier(stream).wait(stream);
    stream.wait();
    if (boot.rank() == 0) {
      std::cout << fmt::format("{} ranks met in {:.2f} s\n", group->size(), monotonic_seconds() - begin) << std::flush;
    }
    const std::vector<comm::CommTiming> timings = comm::bench_comm(*group, stream, options.bench);
    if (boot.rank() == 0) {
      std::cout << comm::describe(timings, group->size()) << std::flush;
      const int machines = comm::machines_of(boot.world().places());
      if (!options.csv.empty()) replace_file(options.csv, comm::to_csv(timings, group->size(), machines));
    }
  }
  boot.finish();
  return kExitComplete;
}

}  // namespace

void add_bench_comm(CLI::App& bench, Action& run) {
  CLI::App* verb = bench.add_subcommand("comm",
                                        "Time every kind of call between ranks.\n\n"
                                        "  megalith bench comm --nproc 4 --accelerator cpu\n"
                                        "  torchrun --nproc-per-node 8 --no-python megalith bench comm");
  const auto options = std::make_shared<Options>();
  options->ranks.add_to(*verb);
  verb->add_option("--accelerator", options->trainer.accelerator, "cpu: Gloo, gpu: NCCL")
      ->transform(as_word_of<config::Accelerator>())
      ->default_str("auto");
  verb->add_option("--least-bytes", options->bench.least_bytes, "of the smallest call")
      ->check(at_least(1))
      ->capture_default_str();
  verb->add_option("--most-bytes", options->bench.most_bytes, "of the largest call")
      ->check(at_least(1))
      ->capture_default_str();
  verb->add_option("--seconds", options->bench.seconds, "for each operation and size, about")
      ->check(above(0))
      ->capture_default_str();
  verb->add_option("--csv", options->csv, "write the times to this file: a wire for `megalith bench step --as-rank`");
  verb->add_option("--timeout", options->trainer.communication_timeout, "seconds for the ranks of a call to arrive")
      ->check(above(0))
      ->capture_default_str();
  verb->add_option("--start-timeout", options->trainer.start_timeout, "seconds for all ranks to appear")
      ->check(above(0))
      ->capture_default_str();
  verb->callback([options, &run] { run = [options] { return run_comm(*options); }; });
}

}  // namespace megalith::cli
