#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "config/fleet_environment.h"
#include "config/run_config.h"
#include "core/file.h"
#include "train/run/run_identity.h"

namespace megalith::train {

// Everything that a run makes lies in one directory. Holding this object means owning it: no second process writes
// there. A directory with rosters is a supervisor's (rosters.h), no start without one may have it.
class RunDirectory {
 public:
  // Creates it, or takes an existing one where exp_manager.resume_if_exists allows; else a user error. A directory that
  // holds files of something else is refused.
  static RunDirectory open(const config::Run& run);
  // For rank 0 of a generation, whose roster is the claim: nothing is locked, which a process that hangs would keep for
  // ever, and no start is counted.
  static RunDirectory open(const config::Run& run, const config::FleetEnvironment& fleet);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path dllogger() const { return path_ / "dllogger" / "rank-0" / "dllogger.json"; }
  std::filesystem::path hparams() const { return path_ / "hparams.yaml"; }
  std::filesystem::path events() const { return path_ / "events.jsonl"; }
  std::filesystem::path report() const { return path_ / "report.html"; }
  std::filesystem::path tuning() const { return path_ / "plans.json"; }
  const RunIdentity& identity() const { return start_.identity; }
  // What people should know of this start; empty: nothing.
  const std::string& note() const { return start_.note; }

 private:
  RunDirectory(std::filesystem::path path, CountedStart start, std::optional<File> lock)
      : path_(std::move(path)), start_(std::move(start)), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  CountedStart start_;
  std::optional<File> lock_;  // none under a supervisor
};

// For a supervisor before it makes its first roster: which run a directory holds, or a new one. Its generations begin
// after identity.generation, those of its rosters come later. Refuses what RunDirectory::open() refuses. While the lock
// is held nobody else claims the directory.
struct ClaimedRun {
  RunIdentity identity;
  std::string note;  // what people should know of it; empty: nothing
  File lock;
};
ClaimedRun claim_run(const config::Run& run);

// Keeps other runs out of a directory of checkpoints that the config names. User error where one is in it.
File lock_checkpoints(const std::filesystem::path& directory);

// Where the starts of a run are counted.
std::filesystem::path starts_file(const config::Run& run);

// exp_manager.explicit_log_dir, or runs/<name>.
std::filesystem::path run_path(const config::Run& run);

}  // namespace megalith::train
