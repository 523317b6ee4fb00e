#include "train/run_directory.h"

#include <sys/file.h>

#include "core/error.h"

namespace megalith::train {

std::filesystem::path run_path(const config::Run& run) {
  const std::string& explicit_dir = run.exp_manager.explicit_log_dir;
  return explicit_dir.empty() ? std::filesystem::path("runs") / run.name : std::filesystem::path(explicit_dir);
}

namespace {

constexpr const char* kLock = ".megalith.lock";
constexpr const char* kStarts = ".megalith.starts";

void create_or_explain(const std::filesystem::path& path) {
  try {
    make_directory(path);
  } catch (const Error& error) {
    user_error("the run directory cannot be used: {}; choose another with exp_manager.explicit_log_dir=DIR",
               error.what());
  }
}

File lock(const std::filesystem::path& path) {
  try {
    File file = File::open_for_appending(path / kLock);
    if (::flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0) {
      user_error("{} is in use by another megalith; wait for it or choose another exp_manager.explicit_log_dir",
                 path.string());
    }
    return file;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::user) throw;
    user_error("the run directory is not writable: {}", error.what());
  }
}

}  // namespace

RunDirectory RunDirectory::open(const config::Run& run) {
  const std::filesystem::path path = run_path(run);
  const bool is_run = std::filesystem::exists(path / "hparams.yaml");
  // A run that ended before it began left its lock and logs, and no hparams.yaml.
  const bool is_ours = is_run || std::filesystem::exists(path / kLock);
  if (std::filesystem::is_directory(path) && !is_ours && !std::filesystem::is_empty(path)) {
    user_error("{} holds files that are not a run's; choose another exp_manager.explicit_log_dir", path.string());
  }
  if (is_run && !run.exp_manager.resume_if_exists) {
    user_error(
        "{} already holds a run; continue it with exp_manager.resume_if_exists=true or choose another "
        "exp_manager.explicit_log_dir",
        path.string());
  }
  create_or_explain(path);
  File held = lock(path);
  return {path, count_start(path / kStarts, is_run), std::move(held)};
}

}  // namespace megalith::train
