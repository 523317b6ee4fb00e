#include "train/run/tiers.h"

#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/file_names.h"
#include "core/error.h"
#include "core/hash/digest.h"
#include "core/process/file_lock.h"
#include "train/run/run_directory.h"

namespace megalith::train {

namespace fs = std::filesystem;

namespace {

fs::path of_node(const std::string& directory, const std::string& node) {
  std::string path = directory;
  for (size_t at = path.find("%n"); at != std::string::npos; at = path.find("%n", at + node.size()))
    path.replace(at, 2, node);
  return path;
}

}  // namespace

Tiers tiers_of(const config::Run& run, int rank) {
  return tiers_of(run, std::to_string(rank / run.trainer.devices));
}

Tiers tiers_of(const config::Run& run, const std::string& node) {
  const config::CheckpointCallback& checkpoints = run.exp_manager.checkpoint_callback_params;
  const fs::path directory = fs::absolute(run_path(run)).lexically_normal();
  // Disks and memory of a node serve many runs.
  const std::string of_run = digest_of(directory.string());
  Tiers tiers{.persistent = run_path(run) / "checkpoints", .local = {}, .memory = {}};
  if (!checkpoints.dirpath.empty()) tiers.persistent = checkpoints.dirpath;
  if (!checkpoints.local_dirpath.empty()) tiers.local = of_node(checkpoints.local_dirpath, node) / of_run;
  if (!checkpoints.memory_dirpath.empty() && checkpoints.memory_dirpath != "none")
    tiers.memory = of_node(checkpoints.memory_dirpath, node) / fmt::format("megalith-{}", ::getuid()) / of_run;
  return tiers;
}

namespace {

void try_out(const fs::path& directory, const std::string& who) {
  make_directory(directory);
  const fs::path probe = directory / (".megalith.probe-" + who);
  ::unlink(probe.c_str());
  File file = File::create_new(probe);
  try {
    file.write("written to see whether it can be\n");
    file.sync();
  } catch (...) {
    ::unlink(probe.c_str());
    throw;
  }
  ::unlink(probe.c_str());
}

constexpr const char* kLock = "lock";
constexpr const char* kCopies = "copies";

File locked(const fs::path& path, LockMode mode) {
  File file = File::open_for_appending(path);
  if (lock(file, mode) != LockResult::taken) io_error_errno(fmt::format("cannot lock {}", path.string()));
  return file;
}

bool is_abandoned(const fs::path& directory) {
  try {
    return try_lock(File::open_for_appending(directory / kLock)) == LockResult::taken;
  } catch (const Error&) {
    return false;
  }
}

// Only what we name this way is ours to delete.
void remove_run(const fs::path& directory) {
  std::error_code status;
  for (fs::directory_iterator entry(directory, status), end; !status && entry != end; entry.increment(status)) {
    const std::string name = entry->path().filename().string();
    if (name == kLock || checkpoint::is_file_of_step(name)) ::unlink(entry->path().c_str());
    if (checkpoint::is_plain_directory(entry->path()) && (name == kCopies || checkpoint::parse_step_name(name)))
      remove_run(entry->path());
  }
  ::rmdir(directory.c_str());
}

void remove_abandoned(const fs::path& of_user, const fs::path& own) {
  std::error_code status;
  for (fs::directory_iterator entry(of_user, status), end; !status && entry != end; entry.increment(status)) {
    const fs::path& directory = entry->path();
    if (directory != own && checkpoint::is_plain_directory(directory) && is_abandoned(directory)) remove_run(directory);
  }
}

// Nobody removes or makes a directory meanwhile.
File open_directory(const fs::path& directory) {
  const fs::path of_user = directory.parent_path();
  make_private_directory(of_user);
  const File exclusive = locked(of_user / kLock, LockMode::exclusive);
  make_private_directory(directory);
  File held = locked(directory / kLock, LockMode::shared);
  remove_abandoned(of_user, directory);
  return held;
}

}  // namespace

std::string why_not_writable(const Tiers& tiers, const std::string& who) {
  for (const auto& [directory, key] : {std::pair(tiers.persistent, "dirpath"), {tiers.local, "local_dirpath"}}) {
    if (directory.empty()) continue;
    try {
      try_out(directory, who);
    } catch (const Error& error) {
      return fmt::format(
          "checkpoints cannot be written to {}: {}; choose another directory with "
          "exp_manager.checkpoint_callback_params.{}",
          directory.string(), error.what(), key);
    }
  }
  return {};
}

int64_t reusable_memory(const Tiers& tiers) {
  constexpr int64_t kBlock = 512;  // of st_blocks
  int64_t bytes = 0;
  std::error_code status;
  if (tiers.memory.empty()) return 0;
  for (const auto& run : fs::directory_iterator(tiers.memory.parent_path(), status)) {
    if (!checkpoint::is_plain_directory(run.path()) || (run.path() != tiers.memory && !is_abandoned(run.path())))
      continue;
    for (const auto& file : fs::recursive_directory_iterator(run.path(), status)) {
      struct stat info {};
      if (::lstat(file.path().c_str(), &info) == 0) bytes += info.st_blocks * kBlock;
    }
  }
  return bytes;
}

fs::path Tiers::copies() const {
  return memory.empty() ? memory : memory / kCopies;
}

RunMemory::RunMemory(const fs::path& directory, bool is_kept)
    : lock_(is_kept && checkpoint::is_plain_directory(directory) ? locked(directory / kLock, LockMode::shared)
                                                                 : open_directory(directory)) {}

}  // namespace megalith::train
