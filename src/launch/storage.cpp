#include "launch/storage.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/scalar.h"
#include "core/error.h"
#include "data/tokenizer/tokenizer.h"
#include "plan/run_layout.h"
#include "train/run/run_files.h"

namespace megalith::launch {

namespace fs = std::filesystem;

namespace {

bool is_inside(const fs::path& path, const fs::path& folder) {
  const auto end = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end.first == folder.end() || (std::next(end.first) == folder.end() && end.first->empty());
}

template <class Body>
void guard(std::vector<std::string>& problems, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    if (exit_code(error.kind()) != exit_code(ErrorKind::user)) throw;
    problems.emplace_back(error.what());
  }
}

// The run with the paths of this machine; those that it cannot see are taken out and noted.
class Translation {
 public:
  Translation(const Storage& storage, std::vector<std::string>& unchecked) : storage_(storage), unchecked_(unchecked) {}

  config::Run run(config::Run run) {
    for (std::string* file :
         {&run.model.tokenizer.vocab_file, &run.model.tokenizer.merge_file, &run.model.tokenizer.model})
      translate_file(*file);
    for (auto* list : {&run.model.data.data_prefix, &run.model.data.validation_prefix, &run.model.data.test_prefix})
      translate_data(*list);
    return run;
  }
  bool tokenizer_is_hidden() const { return tokenizer_is_hidden_; }

 private:
  void translate_file(std::string& file) {
    if (file.empty()) return;
    if (const auto here = storage_.seen_here(file)) {
      file = here->string();
      return;
    }
    unchecked_.push_back(file);
    tokenizer_is_hidden_ = true;
    file.clear();
  }

  // Prefixes, or weights and prefixes in turn.
  void translate_data(std::vector<std::string>& entries) {
    std::vector<std::string> kept;
    for (const std::string& entry : entries) {
      if (config::read_double(entry)) {
        kept.push_back(entry);
      } else if (const auto here = storage_.seen_here(entry)) {
        kept.push_back(here->string());
      } else {
        unchecked_.push_back(entry);
        const bool has_weight = !kept.empty() && config::read_double(kept.back());
        if (has_weight) kept.pop_back();
      }
    }
    entries = std::move(kept);
  }

  const Storage& storage_;
  std::vector<std::string>& unchecked_;
  bool tokenizer_is_hidden_ = false;
};

std::vector<std::string> files_missing_here(const config::Run& run) {
  config::Run visible = run;
  if (visible.model.data.data_prefix.empty()) visible.model.data.data_impl = config::DataImpl::mock;
  return train::missing_files(visible);
}

}  // namespace

Storage::Storage(const Profile& profile, fs::path work_directory)
    : everything_(profile.text("image").empty()),
      mounts_(profile.mounts()),
      work_directory_(std::move(work_directory)) {
  // The innermost mount is the one that counts.
  std::stable_sort(mounts_.begin(), mounts_.end(),
                   [](const Mount& a, const Mount& b) { return a.target.size() > b.target.size(); });
}

fs::path Storage::whole(const fs::path& path) const {
  return (work_directory_ / path).lexically_normal();
}

const Mount* Storage::mount_of(const fs::path& whole) const {
  const auto found = std::find_if(mounts_.begin(), mounts_.end(), [&](const Mount& mount) {
    return is_inside(whole, fs::path(mount.target).lexically_normal());
  });
  return found == mounts_.end() ? nullptr : &*found;
}

bool Storage::is_mounted(const fs::path& path) const {
  return everything_ || mount_of(whole(path)) != nullptr;
}

std::optional<fs::path> Storage::seen_here(const fs::path& path) const {
  const fs::path file = whole(path);
  if (everything_) return file;
  const Mount* mount = mount_of(file);
  if (mount == nullptr || mount->seen_at.empty()) return std::nullopt;
  const fs::path inside = file.lexically_relative(mount->target);
  return inside == "." ? fs::path(mount->seen_at) : (mount->seen_at / inside).lexically_normal();
}

TrainingCheck check_training(const config::Run& run, int64_t ranks, const Storage& storage, bool files_come_later) {
  TrainingCheck check;
  guard(check.problems, [&] { plan::check_ranks(run, ranks); });
  Translation translation(storage, check.unchecked);
  const config::Run here = translation.run(run);
  std::vector<std::string>& missed = files_come_later ? check.unchecked : check.problems;
  guard(missed, [&] {
    for (const std::string& missing : files_missing_here(here)) missed.push_back(missing);
  });
  if (!translation.tokenizer_is_hidden()) {
    guard(check.problems, [&] { plan::check_layout(here, data::vocabulary_of(here.model.tokenizer).size); });
    return check;
  }
  // How many ids a tokenizer has is in its files, unless its type or the recipe says it.
  std::vector<std::string> unknown;
  int64_t vocabulary = 0;
  guard(unknown, [&] { vocabulary = data::vocabulary_of(run.model.tokenizer).size; });
  if (vocabulary > 0) {
    guard(check.problems, [&] { plan::check_layout(here, vocabulary); });
  } else {
    check.unchecked.emplace_back("the layout, for which the tokenizer is needed");
  }
  return check;
}

}  // namespace megalith::launch
