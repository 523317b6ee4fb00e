#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>

#include "checkpoint/layout.h"
#include "cli/verbs.h"
#include "core/clock.h"
#include "core/error.h"
#include "train/inference.h"

namespace megalith::cli {

namespace fs = std::filesystem;

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

// The checkpoint itself, or all that a directory or a run holds, newest first. A save that did not finish is none.
std::vector<fs::path> steps_at(const fs::path& path) {
  const fs::path directory = fs::is_directory(path / "checkpoints") ? path / "checkpoints" : path;
  if (!fs::is_directory(directory)) user_error("there is no checkpoint {}", path.string());
  const bool is_step = checkpoint::parse_step_name(directory.filename().string()).has_value();
  if (is_step || fs::exists(directory / checkpoint::kManifestName)) return {directory};
  std::map<int64_t, fs::path, std::greater<>> steps;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const auto step = checkpoint::parse_step_name(entry.path().filename().string());
    if (step && fs::exists(entry.path() / checkpoint::kManifestName)) steps.emplace(*step, entry.path());
  }
  if (steps.empty()) user_error("there is no checkpoint in {}", directory.string());
  std::vector<fs::path> paths;
  paths.reserve(steps.size());
  for (const auto& [step, step_path] : steps) paths.push_back(step_path);
  return paths;
}

std::string verify_one(const fs::path& path) {
  const double begin = monotonic_seconds();
  checkpoint::Loaded loaded = checkpoint::Loaded::open(path);
  loaded.verify();
  const double seconds = monotonic_seconds() - begin;
  int64_t bytes = 0;
  size_t chunks = 0;
  for (const checkpoint::ShardInfo& shard : loaded.manifest().shards) {
    bytes += shard.digests.bytes;
    chunks += shard.digests.chunks.size();
  }
  return fmt::format("{}: every byte as it was written ({} bytes in {} chunks of {} shards; {:.2f} s, {:.2f} GB/s)\n",
                     path.string(), bytes, chunks, loaded.manifest().shards.size(), seconds,
                     static_cast<double>(bytes) / 1e9 / std::max(seconds, 1e-9));
}

int run_verify(const std::string& path) {
  int64_t damaged = 0;
  for (const fs::path& step : steps_at(path)) {
    try {
      std::cout << verify_one(step) << std::flush;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data && error.kind() != ErrorKind::io) throw;
      std::cout << fmt::format("{}: damaged: {}\n", step.string(), error.what()) << std::flush;
      ++damaged;
    }
  }
  return damaged == 0 ? kExitComplete : exit_code(ErrorKind::data);
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
      "verify",
      "Read every byte, compare it with its digest and say how fast that went. All checkpoints of a run, or one; exit "
      "code 2 if one is damaged.\n\n"
      "  megalith checkpoint verify runs/demo\n"
      "  megalith checkpoint verify runs/demo/checkpoints/step-00000100");
  verify->add_option("checkpoint", *path, "a run, its checkpoints directory, or one step in it")->required();
  verify->callback([path, &run] { run = [path] { return run_verify(*path); }; });
  add_checkpoint_convert(*verb, run);
}

}  // namespace megalith::cli
