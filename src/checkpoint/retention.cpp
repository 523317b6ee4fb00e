#include "checkpoint/layout.h"
#include "checkpoint/store.h"
#include "core/error.h"

namespace megalith::checkpoint {

namespace fs = std::filesystem;

namespace {
// Only a directory in which every file is one that we name this way is ours to delete.
bool looks_like_ours(const fs::path& directory) {
  std::error_code status;
  for (fs::directory_iterator entry(directory, status), end; !status && entry != end; entry.increment(status)) {
    const std::string name = entry->path().filename().string();
    std::error_code type_status;
    if (!is_file_of_step(name) || entry->symlink_status(type_status).type() != fs::file_type::regular) return false;
  }
  return !status;
}

// Names that identify what was verified: a step saved anew has a new manifest.
std::string identity(const fs::path& step_directory) {
  return digest_of(read_plain_text(step_directory / kManifestName));
}
}  // namespace

// Throws a data error unless every byte is as it was written.
void Store::verify(const StepInfo& step) {
  const std::string manifest = identity(step.path);
  open(step.step).verify();
  verified_.insert(manifest);
}

bool Store::verified(const StepInfo& step) {
  if (step.status != StepStatus::committed) return false;
  try {
    if (!verified_.contains(identity(step.path))) verify(step);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Walks from the one just saved to the oldest; what lies behind the first `keep_` that verify goes. Nothing is deleted
// on the word of a checkpoint that was only written: it is read back first. Higher steps, left where a run went back,
// are not older and stay.
void Store::apply_retention(const Manifest& saved, bool verified_already, SaveResult& result) {
  try {
    if (verified_already) note_verified(saved);
    empty_trash();
    if (keep_ == kKeepAll) return;
    std::vector<StepInfo> steps = list();
    std::erase_if(steps, [&](const StepInfo& step) { return step.step > saved.state.step; });
    if (static_cast<int64_t>(steps.size()) <= keep_) return;
    int64_t good = 0;
    for (const StepInfo& step : steps) {
      if (good >= keep_) {
        remove_step(step, result);
      } else if (verified(step)) {
        ++good;
      }
    }
  } catch (const std::exception& error) {
    result.warnings.push_back(fmt::format("retention: {}", error.what()));
  }
}

void Store::remove_step(const StepInfo& step, SaveResult& result) const {
  const std::string name = step.path.filename().string();
  if (!looks_like_ours(step.path)) {
    result.warnings.push_back(fmt::format("{} is kept: it holds files that are not ours", step.path.string()));
    return;
  }
  // Renamed first, so that a crash half way leaves trash and never something that looks like a checkpoint.
  int64_t count = 1;
  fs::path trash = directory_ / trash_name(step.step, count);
  while (fs::exists(fs::symlink_status(trash))) trash = directory_ / trash_name(step.step, ++count);
  fs::rename(step.path, trash);
  sync_directory(directory_);
  fs::remove_all(trash);
  result.removed.push_back(name);
}

// What a crash left of a removal.
void Store::empty_trash() const {
  std::vector<fs::path> trash;
  for (const auto& entry : fs::directory_iterator(directory_)) {
    const std::string name = entry.path().filename().string();
    if (is_trash_name(name) && is_plain_directory(entry.path()) && looks_like_ours(entry.path()))
      trash.push_back(entry.path());
  }
  for (const fs::path& path : trash) fs::remove_all(path);
}

}  // namespace megalith::checkpoint
