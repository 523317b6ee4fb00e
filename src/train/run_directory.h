#pragma once

#include <filesystem>
#include <string>

#include "config/run_config.h"
#include "core/file.h"
#include "train/run_identity.h"

namespace megalith::train {

// Everything that a run makes lies in one directory. Holding this object means owning it: no second process writes
// there.
class RunDirectory {
 public:
  // Creates it, or takes an existing one where exp_manager.resume_if_exists allows; else a user error. A directory that
  // holds files of something else is refused.
  static RunDirectory open(const config::Run& run);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path dllogger() const { return path_ / "dllogger" / "rank-0" / "dllogger.json"; }
  std::filesystem::path hparams() const { return path_ / "hparams.yaml"; }
  std::filesystem::path events() const { return path_ / "events.jsonl"; }
  std::filesystem::path report() const { return path_ / "report.html"; }
  std::filesystem::path plans() const { return path_ / "plans.json"; }
  const RunIdentity& identity() const { return identity_; }

 private:
  RunDirectory(std::filesystem::path path, RunIdentity identity, File lock)
      : path_(std::move(path)), identity_(std::move(identity)), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  RunIdentity identity_;
  File lock_;
};

// exp_manager.explicit_log_dir, or runs/<name>.
std::filesystem::path run_path(const config::Run& run);

}  // namespace megalith::train
