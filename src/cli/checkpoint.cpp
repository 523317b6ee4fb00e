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

// Of the values in the order of the whole tensor: the same on whatever layout it was saved.
void print_digests(checkpoint::Loaded& loaded) {
  std::vector<std::byte> memory;
  std::cout << "digests (xxh3)\n";
  for (const checkpoint::TensorInfo& info : loaded.manifest().tensors) {
    memory.resize(static_cast<size_t>(info.shape.elements() * size_of(info.dtype)));
    loaded.load_tensor(info.kind, info.name, Tensor(memory.data(), info.dtype, info.shape));
    std::cout << fmt::format("  {}  {} {}\n", checkpoint::digest_of(memory), name_of(info.kind), info.name);
  }
}

int run_inspect(const std::string& path, bool digests) {
  checkpoint::Loaded loaded = train::open_checkpoint(path);
  std::cout << checkpoint::describe(loaded.manifest());
  if (digests) print_digests(loaded);
  return kExitComplete;
}

int run_verify(const std::string& path) {
  checkpoint::Loaded loaded = train::open_checkpoint(path);
  const double begin = monotonic_seconds();
  loaded.verify();
  const double seconds = monotonic_seconds() - begin;
  int64_t bytes = 0;
  size_t chunks = 0;
  for (const checkpoint::ShardInfo& shard : loaded.manifest().shards) {
    bytes += shard.digests.bytes;
    chunks += shard.digests.chunks.size();
  }
  std::cout << fmt::format(
      "{}: every byte as it was written ({} bytes, {} chunks, {} shards; {} in {:.2f} s, {:.2f} GB/s)\n",
      loaded.path().string(), bytes, chunks, loaded.manifest().shards.size(), cost::format_bytes(bytes), seconds,
      static_cast<double>(bytes) / 1e9 / std::max(seconds, 1e-9));
  return kExitComplete;
}

}  // namespace

void add_checkpoint(CLI::App& program, Action& run) {
  CLI::App* verb = program.add_subcommand("checkpoint", "Look at checkpoints and carry them elsewhere.");
  verb->require_subcommand(1);
  const auto path = std::make_shared<std::string>();
  CLI::App* inspect = verb->add_subcommand("inspect",
                                           "What a checkpoint holds.\n\n"
                                           "  megalith checkpoint inspect runs/demo/checkpoints/step-00000100\n"
                                           "  megalith checkpoint inspect runs/demo --digests");
  inspect->add_option("checkpoint", *path, "a run, its checkpoints directory, or one step in it")->required();
  const auto digests = std::make_shared<bool>(false);
  inspect->add_flag("--digests", *digests, "a digest of each tensor as well: the same bits have the same");
  inspect->callback([path, digests, &run] { run = [path, digests] { return run_inspect(*path, *digests); }; });
  CLI::App* verify = verb->add_subcommand(
      "verify", "Read every byte and compare it with its digest.\n\n  megalith checkpoint verify runs/demo");
  verify->add_option("checkpoint", *path, "a run, its checkpoints directory, or one step in it")->required();
  verify->callback([path, &run] { run = [path] { return run_verify(*path); }; });
  add_checkpoint_convert(*verb, run);
}

}  // namespace megalith::cli
