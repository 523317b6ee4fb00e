#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "launch/profiles/profile.h"

namespace megalith::launch {

// What of the program's paths this machine can see.
class Storage {
 public:
  // Without an image the program sees what this machine sees; in an image only what is mounted.
  Storage(const Profile& profile, std::filesystem::path work_directory);

  // Where this machine sees what the program sees at `path`; nothing: nowhere.
  std::optional<std::filesystem::path> seen_here(const std::filesystem::path& path) const;
  // The program sees it on storage of the cluster, not in its image.
  bool is_mounted(const std::filesystem::path& path) const;

 private:
  std::filesystem::path whole(const std::filesystem::path& path) const;
  const Mount* mount_of(const std::filesystem::path& whole) const;  // null: none

  bool everything_;
  std::vector<Mount> mounts_;
  std::filesystem::path work_directory_;
};

// What can be said of a training run before it is submitted.
struct TrainingCheck {
  std::vector<std::string> problems;   // why it cannot run
  std::vector<std::string> unchecked;  // files that the job looks for first, since this machine cannot see them
};

// The same checks that training begins with: ranks, files, layout. `run` is validated. Files that a launch before this
// one may make are not missed.
TrainingCheck check_training(const config::Run& run, int64_t ranks, const Storage& storage,
                             bool files_come_later = false);

}  // namespace megalith::launch
