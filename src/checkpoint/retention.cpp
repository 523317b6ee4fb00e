#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "checkpoint/file_names.h"
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

// Without a ranking the order stays: newest first. A step that has no such number is worse than all that have one.
void Store::sort_best_first(std::vector<StepInfo>& steps) const {
  if (ranking_.by.empty()) return;
  const auto value_of = [&](const StepInfo& step) {
    const auto found = step.state.extra.find(ranking_.by);
    const double value = found == step.state.extra.end() ? std::nan("") : std::strtod(found->second.c_str(), nullptr);
    if (std::isnan(value)) return std::numeric_limits<double>::infinity();
    return ranking_.largest ? -value : value;
  };
  std::stable_sort(steps.begin(), steps.end(),
                   [&](const StepInfo& a, const StepInfo& b) { return value_of(a) < value_of(b); });
}

// Walks from the best to the worst, which is from the one just saved to the oldest where nothing ranks them; what comes
// after the first `keep_` that verify goes, but for the newest. Nothing is deleted on the word of a checkpoint that was
// only written: it is read back first. Higher steps, left where a run went back, are not older and stay, and so does
// what another run has saved.
void Store::apply_retention(const Manifest& saved, bool verified_already, SaveResult& result) {
  try {
    if (verified_already) note_verified(saved);
    pass_fence();
    empty_trash();
    if (keep_ == kKeepAll) return;
    std::vector<StepInfo> steps = list();
    std::erase_if(steps, [&](const StepInfo& step) {
      const bool is_foreign = step.status == StepStatus::committed && step.state.run_id != saved.state.run_id;
      return step.step > saved.state.step || is_foreign;
    });
    if (static_cast<int64_t>(steps.size()) <= keep_) return;
    sort_best_first(steps);
    int64_t good = 0;
    for (const StepInfo& step : steps) {
      if (good < keep_) {
        good += verified(step) ? 1 : 0;
      } else if (step.step != saved.state.step) {
        remove_step(step, result);
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
  fs::remove_all(move_to_trash(step));
  result.removed.push_back(name);
}

fs::path Store::move_to_trash(const StepInfo& step) const {
  int64_t count = 1;
  fs::path trash = directory_ / trash_name(step.step, count);
  while (fs::exists(fs::symlink_status(trash))) trash = directory_ / trash_name(step.step, ++count);
  fs::rename(step.path, trash);
  sync_directory(directory_);
  return trash;
}

std::vector<std::string> Store::set_given_up_aside(const std::string& run_id, const Lineage& lineage) const {
  std::vector<std::string> lines;
  std::optional<int64_t> newest;
  for (const StepInfo& step : list()) {
    if (step.status != StepStatus::committed) continue;
    if (step.state.run_id != run_id || lineage.standing_of(step.state) != Lineage::Standing::given_up) {
      newest = std::max(newest.value_or(step.step), step.step);
      continue;
    }
    pass_fence();
    const std::string why = lineage.why_not(step.state);
    if (looks_like_ours(step.path)) {
      lines.push_back(fmt::format("{} is now {}: {}", step.path.string(), move_to_trash(step).string(), why));
    } else {
      lines.push_back(
          fmt::format("{} is not loaded and stays, as it holds files that are not ours: {}", step.path.string(), why));
    }
  }
  if (lines.empty()) return lines;
  // Else what is gone would count as lost.
  if (newest) replace_file(directory_ / kTrackerName, std::to_string(*newest));
  if (!newest) remove_if_there(directory_ / kTrackerName);
  return lines;
}

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
