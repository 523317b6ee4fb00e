#include "train/run/run_directory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "core/error.h"
#include "core/process/file_lock.h"
#include "core/process/host.h"
#include "core/run_folders.h"
#include "train/run/rosters.h"
#include "train/run/run_files.h"

namespace megalith::train {

std::filesystem::path run_path(const config::Run& run) {
  const std::string& explicit_dir = run.exp_manager.explicit_log_dir;
  return explicit_dir.empty() ? std::filesystem::path("runs") / run.name : std::filesystem::path(explicit_dir);
}

namespace {

constexpr const char* kConfig = "hparams.yaml";
constexpr const char* kStarts = ".megalith.starts";

void create_or_explain(const std::filesystem::path& path) {
  try {
    make_directory(path);
  } catch (const Error& error) {
    user_error("the run directory cannot be used: {}; choose another with exp_manager.explicit_log_dir=DIR",
               error.what());
  }
}

// Who holds the directory, as the lock file says; it may be empty for a moment.
std::string describe_holder(const std::filesystem::path& lock) {
  std::ifstream file(lock);
  std::string holder;
  std::getline(file, holder);
  return holder.empty() ? "another megalith" : holder;
}

void write_holder(File& lock) {
  lock.truncate(0);
  lock.write(fmt::format("process {} on {}\n", ::getpid(), host_name()));
}

// What `megalith launch` and `megalith supervise` have left there comes before the run.
bool holds_nothing_of_others(const std::filesystem::path& path) {
  const std::filesystem::directory_iterator entries(path);
  return std::all_of(begin(entries), end(entries), [](const auto& entry) {
    return entry.path().filename() == kLaunchFolder || entry.path().filename() == kControlFolder;
  });
}

// Some file systems know no locks, Lustre without `flock` among them: there the identities of runs, which checkpoints
// carry, must do.
File lock(const std::filesystem::path& path) {
  try {
    File file = File::open_for_appending(path / kRunLock);
    if (try_lock(file) == LockResult::busy) {
      user_error("{} is in use by {}; wait for it or choose another exp_manager.explicit_log_dir", path.string(),
                 describe_holder(path / kRunLock));
    }
    write_holder(file);
    return file;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::user) throw;
    user_error("the run directory is not writable: {}", error.what());
  }
}

}  // namespace

File lock_checkpoints(const std::filesystem::path& directory) {
  File file = File::open_for_appending(directory / kRunLock);
  if (try_lock(file) == LockResult::busy) {
    user_error(
        "another run that is training now saves its checkpoints to {}; choose another "
        "exp_manager.checkpoint_callback_params.dirpath",
        directory.string());
  }
  return file;
}

std::filesystem::path starts_file(const config::Run& run) {
  return run_path(run) / kStarts;
}

namespace {

void check_directory(const config::Run& run, bool may_resume) {
  const std::filesystem::path path = run_path(run);
  const bool is_run = std::filesystem::exists(path / kConfig);
  // A run that ended before it began left its lock and logs, and no hparams.yaml.
  const bool is_ours = is_run || std::filesystem::exists(path / kRunLock);
  if (std::filesystem::is_directory(path) && !is_ours && !holds_nothing_of_others(path)) {
    user_error("{} holds files that are not a run's; choose another exp_manager.explicit_log_dir", path.string());
  }
  if (is_run && !may_resume) {
    user_error(
        "{} already holds a run; continue it with exp_manager.resume_if_exists=true or choose another "
        "exp_manager.explicit_log_dir",
        path.string());
  }
}

CountedStart count_start_in(const config::Run& run, bool resumes) {
  Tiers own = tiers_of(run, 0);
  // A directory that was named may be another run's as well.
  if (!run.exp_manager.checkpoint_callback_params.dirpath.empty()) own.persistent.clear();
  return count_start(starts_file(run), resumes, own);
}

}  // namespace

RunDirectory RunDirectory::open(const config::Run& run) {
  const std::filesystem::path path = run_path(run);
  check_directory(run, run.exp_manager.resume_if_exists);
  if (newest_roster(path) > 0) {
    user_error(
        "{} belongs to a run under a supervisor: go on with `megalith supervise`, or, once none of its processes is "
        "left, remove {} to train without one",
        path.string(), (path / kControlFolder).string());
  }
  create_or_explain(path);
  File held = lock(path);
  return {path, count_start_in(run, std::filesystem::exists(path / kConfig)), std::move(held)};
}

RunDirectory RunDirectory::open(const config::Run& run, const config::FleetEnvironment& fleet) {
  const std::filesystem::path path = run_path(run);
  create_or_explain(path);
  refuse_superseded(path, fleet.generation());
  return {path,
          {.identity = {.id = fleet.run_id,
                        .generation = fleet.generation(),
                        .resumes = std::filesystem::exists(path / kConfig),
                        .has_roster = true}},
          std::nullopt};
}

ClaimedRun claim_run(const config::Run& run) {
  const std::filesystem::path path = run_path(run);
  const int64_t newest = newest_roster(path);
  const bool has_rosters = newest > 0;
  check_directory(run, has_rosters || run.exp_manager.resume_if_exists);
  create_or_explain(path);
  File held = lock(path);
  CountedStart start = count_start_in(run, has_rosters || std::filesystem::exists(path / kConfig));
  if (has_rosters) {  // not every supervisor starts ranks
    start.identity.generation = newest;
    if (!start.identity.is_guess) write_starts(starts_file(run), start.identity);
  }
  return {.identity = start.identity, .note = start.note, .lock = std::move(held)};
}

}  // namespace megalith::train
