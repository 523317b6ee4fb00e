#include "checkpoint/store.h"

#include <unistd.h>

#include <algorithm>
#include <exception>

#include "checkpoint/layout.h"
#include "core/error.h"
#include "core/failpoint.h"

namespace megalith::checkpoint {

namespace fs = std::filesystem;

namespace {
std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code status;
  for (fs::directory_iterator entry(directory, status), end; !status && entry != end; entry.increment(status)) {
    names.push_back(entry->path().filename().string());
  }
  if (status) fail(ErrorKind::io, "cannot list {}: {}", directory.string(), status.message());
  return names;
}

// An attempt that crashed leaves its file behind; the next one takes a new name instead of trusting or waiting for it.
int64_t next_generation(const fs::path& step_directory) {
  int64_t newest = 0;
  for (const std::string& name : names_in(step_directory)) {
    if (const auto shard = parse_shard_name(name)) newest = std::max(newest, shard->generation);
  }
  return newest + 1;
}

bool has_manifest(const fs::path& step_directory) {
  std::error_code status;
  return fs::exists(fs::symlink_status(step_directory / kManifestName, status));
}

void remove_quietly(const fs::path& path) {
  ::unlink(path.c_str());
}
}  // namespace

Store::Store(fs::path directory, int64_t keep) : directory_(std::move(directory)), keep_(keep) {
  if (keep_ != kKeepAll && keep_ < 1) user_error("cannot keep {} checkpoints: at least 1, or -1 for all", keep_);
}

SaveResult Store::save(const Snapshot& snapshot) {
  const fs::path step_directory = directory_ / step_name(snapshot.state.step);
  if (!fs::exists(directory_)) {
    make_directory(directory_);
    sync_directory(fs::absolute(directory_).parent_path());
  }
  make_directory(step_directory);
  if (!is_plain_directory(step_directory)) data_error("{} is a link, not a directory", step_directory.string());
  const std::string shard = shard_name({.generation = next_generation(step_directory), .rank = 0});
  Manifest manifest;
  try {
    pass_failpoint("checkpoint.before_shard");
    manifest = write_shard(snapshot, step_directory, shard);
    sync_directory(step_directory);
    sync_directory(directory_);
    pass_failpoint("checkpoint.before_manifest");
    replace_file(step_directory / kManifestName, encode(manifest));
  } catch (...) {
    discard(step_directory, shard);
    throw;
  }
  SaveResult result{.path = step_directory, .bytes = manifest.shards.front().digests.bytes};
  after_commit(manifest, result);
  return result;
}

Manifest Store::write_shard(const Snapshot& snapshot, const fs::path& step_directory, const std::string& name) const {
  Manifest manifest{.state = snapshot.state, .shards = {}, .tensors = {}};
  std::vector<TensorView> views;
  for (const NamedTensor& named : snapshot.tensors) {
    const Shape& shape = named.tensor.shape;
    const std::vector<int64_t> origin(static_cast<size_t>(shape.rank()), 0);
    views.push_back({.name = stored_name(named.kind, named.name), .tensor = named.tensor});
    manifest.tensors.push_back({.name = named.name,
                                .kind = named.kind,
                                .dtype = named.tensor.dtype,
                                .shape = shape,
                                .shard = name,
                                .box = {.offset = *to_shape(origin), .extent = shape}});
  }
  File file = File::create_new(step_directory / name);
  const FileDigests digests = write_safetensors(file, views, {{"format", "megalith"}});
  file.sync();
  manifest.shards.push_back({.file = name, .digests = digests});
  return manifest;
}

// After a failed save. The rename that commits may have happened even though the call failed (a sync after it did):
// then the new checkpoint stands and nothing is taken from it.
void Store::discard(const fs::path& step_directory, const std::string& shard) const {
  try {
    if (has_manifest(step_directory)) {
      const fs::path path = step_directory / kManifestName;
      const Manifest manifest = decode_manifest(read_plain_text(path), path.string());
      if (manifest.shards.front().file == shard) return;
    }
  } catch (const std::exception&) {
    // An unreadable manifest does not refer to the file of this attempt: it is older.
  }
  remove_quietly(step_directory / shard);
  remove_quietly(step_directory / (std::string(kManifestName) + ".part"));
  if (!has_manifest(step_directory)) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(step_directory, ignored)) {
      if (parse_shard_name(entry.path().filename().string())) remove_quietly(entry.path());
    }
    ::rmdir(step_directory.c_str());
  }
}

void Store::after_commit(const Manifest& manifest, SaveResult& result) {
  const auto attempt = [&](const char* what, auto&& action) {
    try {
      action();
    } catch (const std::exception& error) {
      result.warnings.push_back(fmt::format("{}: {}", what, error.what()));
    }
  };
  attempt("after the commit", [] { pass_failpoint("checkpoint.after_manifest"); });
  attempt("old files of this step", [&] { remove_orphans(manifest); });
  attempt("tracker file", [&] { replace_file(directory_ / kTrackerName, std::to_string(manifest.state.step)); });
  attempt("retention", [&] { apply_retention(manifest.state.step, result); });
}

// Shards of earlier attempts at this step.
void Store::remove_orphans(const Manifest& manifest) const {
  const fs::path step_directory = directory_ / step_name(manifest.state.step);
  for (const std::string& name : names_in(step_directory)) {
    const bool used = std::any_of(manifest.shards.begin(), manifest.shards.end(),
                                  [&](const ShardInfo& shard) { return shard.file == name; });
    if (parse_shard_name(name) && !used) remove_quietly(step_directory / name);
  }
}

std::vector<StepInfo> Store::list() const {
  std::vector<StepInfo> steps;
  std::error_code status;
  if (!fs::exists(directory_, status)) return steps;
  for (const std::string& name : names_in(directory_)) {
    const std::optional<int64_t> step = parse_step_name(name);
    if (!step || !is_plain_directory(directory_ / name)) continue;
    StepInfo info{.step = *step, .path = directory_ / name};
    if (!has_manifest(info.path)) {
      info.status = StepStatus::incomplete;
      info.reason = "no manifest: the save did not finish";
    } else {
      try {
        open(*step);
      } catch (const Error& error) {
        info.status = StepStatus::damaged;
        info.reason = error.what();
      }
    }
    steps.push_back(std::move(info));
  }
  std::sort(steps.begin(), steps.end(), [](const StepInfo& a, const StepInfo& b) { return a.step > b.step; });
  return steps;
}

Latest Store::latest_verified() {
  Latest latest;
  for (StepInfo& step : list()) {
    if (step.status == StepStatus::committed) {
      try {
        verify(step);
        latest.step = step.step;
        latest.path = step.path;
        return latest;
      } catch (const Error& error) {
        step.reason = error.what();
      }
    }
    latest.passed_over.push_back({.name = step.path.filename().string(), .reason = step.reason});
  }
  return latest;
}

Loaded Store::open(int64_t step) const {
  const fs::path path = directory_ / step_name(step);
  if (!is_plain_directory(path)) data_error("there is no checkpoint {}", path.string());
  Loaded loaded = Loaded::open(path);
  if (loaded.manifest().state.step != step) {
    data_error("{} holds a checkpoint of step {}", path.string(), loaded.manifest().state.step);
  }
  return loaded;
}

Loaded open_checkpoint(const fs::path& path, std::vector<PassedOver>& passed_over) {
  if (!fs::is_directory(path)) user_error("there is no checkpoint {}", path.string());
  if (has_manifest(path) || parse_step_name(path.filename().string())) return Loaded::open(path);
  Store store(path);
  Latest latest = store.latest_verified();
  passed_over = std::move(latest.passed_over);
  if (!latest.step) {
    const std::string newest =
        passed_over.empty() ? "" : fmt::format(" ({}: {})", passed_over[0].name, passed_over[0].reason);
    user_error("{} holds no checkpoint that can be used{}", path.string(), newest);
  }
  return store.open(*latest.step);
}

}  // namespace megalith::checkpoint
