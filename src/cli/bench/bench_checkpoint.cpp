#include "checkpoint/bench_checkpoint.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/accepts.h"
#include "cli/verbs.h"
#include "config/run_config.h"
#include "plan/run_request.h"

namespace megalith::cli {

namespace {

struct Options {
  std::string directory = "checkpoint-bench";
  uint64_t bytes = uint64_t{2} << 30;
  int rounds = 4;
  config::Trainer trainer;
};

int run_bench(const Options& options) {
  const std::filesystem::path directory = options.directory;
  const auto rates = checkpoint::bench_checkpoint({.directory = directory,
                                                   .bytes = static_cast<int64_t>(options.bytes),
                                                   .rounds = options.rounds,
                                                   .device = plan::device_of(options.trainer)});
  std::cout << checkpoint::describe(rates);
  std::error_code not_empty;
  std::filesystem::remove(directory, not_empty);
  return kExitComplete;
}

}  // namespace

void add_bench_checkpoint(CLI::App& bench, Action& run) {
  CLI::App* verb =
      bench.add_subcommand("checkpoint",
                           "Rates of writing and reading a checkpoint, beside those of the disk itself.\n\n"
                           "  megalith bench checkpoint --directory /scratch/bench --size 8GB");
  const auto options = std::make_shared<Options>();
  verb->add_option("--directory", options->directory, "on the disk to measure; what is made there is removed again")
      ->capture_default_str();
  verb->add_option("--size", options->bytes, "bytes of the checkpoint: more than the disk's own memory")
      ->type_name("SIZE")
      ->transform(size_in_bytes())
      ->default_str("2GiB");
  verb->add_option("--rounds", options->rounds, "times that each is measured")
      ->check(at_least(1))
      ->capture_default_str();
  verb->add_option("--accelerator", options->trainer.accelerator, "gpu: copies from it as well")
      ->transform(as_word_of<config::Accelerator>())
      ->default_str("auto");
  verb->callback([options, &run] { run = [options] { return run_bench(*options); }; });
}

}  // namespace megalith::cli
