#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/verbs.h"
#include "core/clock.h"
#include "core/error.h"
#include "cost/memory.h"
#include "train/inference.h"

namespace megalith::cli {

namespace {

int run_inspect(const std::string& path) {
  std::cout << checkpoint::describe(train::open_checkpoint(path).manifest());
  return kExitComplete;
}

int run_verify(const std::string& path) {
  checkpoint::Loaded loaded = train::open_checkpoint(path);
  const double begin = monotonic_seconds();
  loaded.verify();
  const double seconds = monotonic_seconds() - begin;
  int64_t bytes = 0;
  for (const checkpoint::ShardInfo& shard : loaded.manifest().shards) bytes += shard.digests.bytes;
  std::cout << fmt::format("{}: every byte as it was written ({} in {:.2f} s, {:.2f} GB/s)\n", loaded.path().string(),
                           cost::format_bytes(bytes), seconds,
                           static_cast<double>(bytes) / 1e9 / std::max(seconds, 1e-9));
  return kExitComplete;
}

}  // namespace

void add_checkpoint(CLI::App& program, Action& run) {
  CLI::App* verb = program.add_subcommand("checkpoint", "Look at checkpoints.");
  verb->require_subcommand(1);
  const auto path = std::make_shared<std::string>();
  CLI::App* inspect = verb->add_subcommand(
      "inspect", "What a checkpoint holds.\n\n  megalith checkpoint inspect runs/demo/checkpoints/step-00000100");
  inspect->add_option("checkpoint", *path, "a run, its checkpoints directory, or one step in it")->required();
  inspect->callback([path, &run] { run = [path] { return run_inspect(*path); }; });
  CLI::App* verify = verb->add_subcommand(
      "verify", "Read every byte and compare it with its digest.\n\n  megalith checkpoint verify runs/demo");
  verify->add_option("checkpoint", *path, "a run, its checkpoints directory, or one step in it")->required();
  verify->callback([path, &run] { run = [path] { return run_verify(*path); }; });
}

}  // namespace megalith::cli
