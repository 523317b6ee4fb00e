#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>

#include "checkpoint/file_names.h"
#include "checkpoint/kept_tokenizer.h"
#include "checkpoint/store.h"
#include "cli/verbs.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/words.h"
#include "train/inference/inference.h"

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
    std::cout << fmt::format("  {}  {} {}\n", digest_of(memory), name_of(info.kind), info.name);
  }
}

int run_inspect(const std::string& path, bool digests) {
  checkpoint::Loaded loaded = train::open_checkpoint(path);
  std::cout << checkpoint::describe(loaded.manifest());
  if (digests) print_digests(loaded);
  return kExitComplete;
}

// A copy that somebody made of a step: no run goes on from it.
bool is_misnamed(const fs::path& path) {
  const std::string name = path.filename().string();
  return !checkpoint::parse_step_name(name) && !checkpoint::is_trash_name(name) &&
         checkpoint::is_plain_directory(path) && fs::exists(path / checkpoint::kManifestName);
}

std::string verify_one(const fs::path& path) {
  const double begin = monotonic_seconds();
  checkpoint::Loaded loaded = checkpoint::Loaded::open(path);
  loaded.verify();
  const double seconds = monotonic_seconds() - begin;
  int64_t bytes = 0;
  int64_t chunks = 0;
  for (const checkpoint::ShardInfo& shard : loaded.manifest().shards) {
    bytes += shard.digests.bytes;
    chunks += std::ssize(shard.digests.chunks);
  }
  return fmt::format("{}: every byte as it was written ({} bytes in {} of {}; {:.2f} s, {:.2f} GB/s)\n", path.string(),
                     bytes, counted(chunks, "chunk"), counted(std::ssize(loaded.manifest().shards), "shard"), seconds,
                     static_cast<double>(bytes) / 1e9 / std::max(seconds, 1e-9));
}

// Reads one checkpoint after the other and says what it found.
class Verifier {
 public:
  void read(const fs::path& step) {
    try {
      std::cout << verify_one(step) << std::flush;
      check_tokenizer(step);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data && error.kind() != ErrorKind::io) throw;
      report(step, error.what());
    }
  }

  // All that a directory holds, newest first.
  void read_all(const fs::path& directory) {
    const checkpoint::Store store(directory);
    const int64_t last = store.last_committed().value_or(-1);
    bool last_is_there = last < 0;
    for (const checkpoint::StepInfo& step : store.list()) {
      last_is_there = last_is_there || step.step == last;
      if (step.status == checkpoint::StepStatus::committed) {
        read(step.path);
      } else if (step.status == checkpoint::StepStatus::damaged) {
        report(step.path, step.reason);
      } else {
        std::cout << fmt::format("{}: not a checkpoint: {}\n", step.path.string(), step.reason);
        continue;
      }
      ++checkpoints_;
    }
    if (!last_is_there)
      report(store.directory_of(last),
             fmt::format("it is gone, and {} says that it was saved", checkpoint::kTrackerName));
    for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
      if (!is_misnamed(entry.path())) continue;
      read(entry.path());
      report(entry.path(), "its name is not that of a step, so that no run goes on from it: rename it or move it away");
    }
    if (checkpoints_ == 0 && damaged_ == 0) user_error("there is no checkpoint in {}", directory.string());
  }

  int exit_code() const { return damaged_ == 0 ? kExitComplete : megalith::exit_code(ErrorKind::data); }

 private:
  void report(const fs::path& path, const std::string& reason) {
    std::cout << fmt::format("{}: damaged: {}\n", path.string(), reason) << std::flush;
    ++damaged_;
  }

  // Steps share it: it is reported once.
  void check_tokenizer(const fs::path& step) {
    const checkpoint::RunState state = checkpoint::Loaded::open(step).manifest().state;
    const auto digests = state.extra.find(checkpoint::kTokenizerDigests);
    if (digests == state.extra.end()) return;
    const fs::path beside = step.has_parent_path() ? step.parent_path() : fs::path(".");
    try {
      checkpoint::check_kept_tokenizer(beside, digests->second);
    } catch (const Error& error) {
      if (bad_tokenizers_.insert(error.what()).second) report(beside / "tokenizer", error.what());
    }
  }

  int64_t checkpoints_ = 0;
  int64_t damaged_ = 0;
  std::set<std::string> bad_tokenizers_;
};

int run_verify(const std::string& path) {
  fs::path directory =
      fs::is_directory(fs::path(path) / "checkpoints") ? fs::path(path) / "checkpoints" : fs::path(path);
  if (!directory.has_filename()) directory = directory.parent_path();
  if (!fs::is_directory(directory)) user_error("there is no checkpoint {}", path);
  Verifier verifier;
  const bool is_step = checkpoint::parse_step_name(directory.filename().string()).has_value();
  if (is_step || fs::exists(directory / checkpoint::kManifestName)) {
    verifier.read(directory);
  } else {
    verifier.read_all(directory);
  }
  return verifier.exit_code();
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
      "Read every byte, compare it with its digest and say how fast that went. All checkpoints of a run with its "
      "tokenizer, or one; exit code 2 if something is damaged, lost or misnamed.\n\n"
      "  megalith checkpoint verify runs/demo\n"
      "  megalith checkpoint verify runs/demo/checkpoints/step-00000100");
  verify->add_option("checkpoint", *path, "a run, its checkpoints directory, or one step in it")->required();
  verify->callback([path, &run] { run = [path] { return run_verify(*path); }; });
  add_checkpoint_convert(*verb, run);
}

}  // namespace megalith::cli
