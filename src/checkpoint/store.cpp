#include "checkpoint/store.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <map>

#include "checkpoint/file_names.h"
#include "checkpoint/hugging_face/hugging_face_files.h"
#include "core/error.h"
#include "core/process/failpoint.h"

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

bool has_manifest(const fs::path& step_directory) {
  std::error_code status;
  return fs::exists(fs::symlink_status(step_directory / kManifestName, status));
}

void remove_quietly(const fs::path& path) {
  ::unlink(path.c_str());
}
}  // namespace

Store::Store(fs::path directory, int64_t keep, Ranking ranking)
    : directory_(std::move(directory)), keep_(keep), ranking_(std::move(ranking)) {
  if (keep_ != kKeepAll && keep_ < 1) user_error("cannot keep {} checkpoints: at least 1, or -1 for all", keep_);
}

fs::path Store::directory_of(int64_t step) const {
  return directory_ / step_name(step);
}

namespace {
ShardContent content_of(const Snapshot& snapshot) {
  ShardContent content;
  std::vector<TensorView> views;
  for (const NamedTensor& named : snapshot.tensors) {
    const Shape& whole = named.tensor.shape;
    const Box box = whole_box(whole);
    views.push_back({.name = stored_name(named.kind, named.name, whole, box), .tensor = named.tensor});
    content.pieces.push_back({named.name, named.kind, named.tensor.dtype, whole, box});
  }
  content.write = [views = std::move(views)](File& file) {
    return write_safetensors(file, views, {{"format", "megalith"}});
  };
  return content;
}

// A manifest that cannot be read is nobody's: the new one takes its place.
std::optional<std::string> run_of(const fs::path& step_directory) {
  try {
    const fs::path path = step_directory / kManifestName;
    return decode_manifest(read_plain_text(path), path.string()).state.run_id;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void check_not_foreign(const fs::path& step_directory, const std::string& run_id) {
  const std::optional<std::string> owner = run_of(step_directory);
  if (owner && *owner != run_id) {
    data_error("{} holds a checkpoint of run {}, this is run {}: give each run a directory of its own",
               step_directory.string(), *owner, run_id);
  }
}

// A name that no attempt has used: one that crashed may have left its file.
ShardName free_name(const fs::path& step_directory, ShardName name) {
  std::error_code status;
  while (fs::exists(fs::symlink_status(step_directory / shard_name(name), status))) ++name.generation;
  return name;
}

std::vector<TensorInfo> tensors_of(const std::vector<ShardContent::Piece>& pieces, const std::string& shard) {
  std::vector<TensorInfo> tensors;
  std::map<std::pair<TensorKind, std::string_view>, size_t> known;
  for (const ShardContent::Piece& piece : pieces) {
    const auto [place, is_new] = known.emplace(std::pair(piece.kind, std::string_view(piece.name)), tensors.size());
    if (is_new)
      tensors.push_back(
          {.name = piece.name, .kind = piece.kind, .dtype = piece.dtype, .shape = piece.whole, .pieces = {}});
    tensors[place->second].pieces.push_back({.shard = shard, .box = piece.box});
  }
  return tensors;
}
}  // namespace

Manifest manifest_of_part(const RunState& state, const Part& part, ShardInfo shard,
                          const std::vector<ShardContent::Piece>& pieces) {
  Manifest manifest{.state = state, .part = part, .shards = {}, .tensors = tensors_of(pieces, shard.file)};
  manifest.shards.push_back(std::move(shard));
  return manifest;
}

SaveResult Store::save(const Snapshot& snapshot) {
  const Manifest part = write_part(snapshot.state, {}, content_of(snapshot), 1);
  const Manifest whole = merge({part}, directory_of(snapshot.state.step).string());
  SaveResult result;
  try {
    result = commit(whole);
  } catch (...) {
    discard(part);
    throw;
  }
  apply_retention(whole, false, result);
  return result;
}

Manifest Store::write_part(const RunState& state, const Part& part, const ShardContent& content,
                           int64_t generation) const {
  const fs::path step_directory = directory_of(state.step);
  if (!fs::exists(directory_)) {
    make_directory(directory_);
    sync_directory(fs::absolute(directory_).parent_path());
  }
  make_directory(step_directory);
  if (!is_plain_directory(step_directory)) data_error("{} is a link, not a directory", step_directory.string());
  check_not_foreign(step_directory, state.run_id);
  const std::string name = shard_name(free_name(step_directory, {.generation = generation, .rank = part.rank}));
  Manifest manifest = manifest_of_part(state, part, {.file = name, .digests = {}}, content.pieces);
  try {
    pass_failpoint("checkpoint.before_shard");
    File file = File::create_new(step_directory / name);
    manifest.shards.front().digests = content.write(file);
    file.sync();
    sync_directory(step_directory);
  } catch (...) {
    discard(manifest);
    throw;
  }
  return manifest;
}

void Store::pass_fence() const {
  if (fence_) fence_();
}

// As replace_file() does it, but for the fence, which has the last word.
void Store::replace_manifest(const fs::path& path, const std::string& text) const {
  const fs::path part = fs::path(path) += ".part";
  remove_quietly(part);
  File file = File::create_new(part);
  try {
    file.write(text);
    file.sync();
    pass_fence();
    publish(part, path);
  } catch (...) {
    remove_quietly(part);
    throw;
  }
}

SaveResult Store::commit(const Manifest& whole) {
  const fs::path step_directory = directory_of(whole.state.step);
  sync_directory(directory_);
  pass_failpoint("checkpoint.before_manifest");
  replace_manifest(step_directory / kManifestName, encode(whole));
  SaveResult result{.path = step_directory};
  for (const ShardInfo& shard : whole.shards) result.bytes += shard.digests.bytes;
  after_commit(whole, result);
  return result;
}

// The rename that commits may have happened even though the call failed (a sync after it did): then the new checkpoint
// stands and nothing is taken from it.
void Store::discard(const Manifest& part) const {
  const fs::path step_directory = directory_of(part.state.step);
  const std::string& shard = part.shards.front().file;
  try {
    if (has_manifest(step_directory)) {
      const fs::path path = step_directory / kManifestName;
      const Manifest manifest = decode_manifest(read_plain_text(path), path.string());
      if (std::any_of(manifest.shards.begin(), manifest.shards.end(),
                      [&](const ShardInfo& info) { return info.file == shard; }))
        return;
    }
  } catch (const std::exception&) {
    // An unreadable manifest does not refer to the file of this attempt: it is older.
  }
  remove_quietly(step_directory / shard);
  if (part.part && part.part->rank == 0) remove_quietly(step_directory / (std::string(kManifestName) + ".part"));
  ::rmdir(step_directory.c_str());
}

void Store::after_commit(const Manifest& manifest, SaveResult& result) const {
  try {
    pass_fence();
  } catch (const std::exception& error) {
    // Between the fence and the rename. What is there may be the files of those who go on with the run.
    result.warnings.push_back(
        fmt::format("nothing is cleaned up, and this checkpoint will not count: {}", error.what()));
    return;
  }
  const auto attempt = [&](const char* what, auto&& action) {
    try {
      action();
    } catch (const std::exception& error) {
      result.warnings.push_back(fmt::format("{}: {}", what, error.what()));
    }
  };
  attempt("after the commit", [] { pass_failpoint("checkpoint.after_manifest"); });
  attempt("old files of this step", [&] { remove_orphans(manifest); });
  attempt("saves that did not finish", [&] { remove_unfinished(manifest, result); });
  attempt("tracker file", [&] { replace_file(directory_ / kTrackerName, std::to_string(manifest.state.step)); });
}

// Shards of earlier attempts at this step.
void Store::remove_orphans(const Manifest& manifest) const {
  const fs::path step_directory = directory_of(manifest.state.step);
  for (const std::string& name : names_in(step_directory)) {
    const bool used = std::any_of(manifest.shards.begin(), manifest.shards.end(),
                                  [&](const ShardInfo& shard) { return shard.file == name; });
    if (parse_shard_name(name) && !used) remove_quietly(step_directory / name);
  }
}

// What a crash left of older steps: a run that went on from another tier does not come back to them.
void Store::remove_unfinished(const Manifest& manifest, SaveResult& result) const {
  const std::optional<int64_t> last = last_committed();
  for (const std::string& name : names_in(directory_)) {
    const std::optional<int64_t> step = parse_step_name(name);
    const fs::path path = directory_ / name;
    if (!step || *step >= manifest.state.step || !is_plain_directory(path) || has_manifest(path)) continue;
    // One that lost its manifest was a checkpoint: retention decides about it.
    if (!last || *step > *last)
      remove_step({.step = *step, .path = path, .status = StepStatus::incomplete, .reason = {}}, result);
  }
}

std::optional<int64_t> Store::last_committed() const {
  std::error_code status;
  if (!fs::exists(fs::symlink_status(directory_ / kTrackerName, status))) return std::nullopt;
  return parse_number(read_plain_text(directory_ / kTrackerName));
}

void Store::catch_up_tracker() const {
  std::optional<int64_t> newest = last_committed();
  bool is_behind = fs::exists(fs::symlink_status(fs::path(directory_ / kTrackerName) += ".part"));
  for (const std::string& name : names_in(directory_)) {
    const std::optional<int64_t> step = parse_step_name(name);
    if (!step || step <= newest || !is_plain_directory(directory_ / name) || !has_manifest(directory_ / name)) continue;
    newest = step;
    is_behind = true;
  }
  if (newest && is_behind) replace_file(directory_ / kTrackerName, std::to_string(*newest));
}

std::vector<StepInfo> Store::list() const {
  std::vector<StepInfo> steps;
  std::error_code status;
  if (!fs::exists(directory_, status)) return steps;
  const std::optional<int64_t> last = last_committed();
  for (const std::string& name : names_in(directory_)) {
    const std::optional<int64_t> step = parse_step_name(name);
    if (!step || !is_plain_directory(directory_ / name)) continue;
    StepInfo info{.step = *step, .path = directory_ / name};
    if (!has_manifest(info.path)) {
      const bool is_lost = last && *step <= *last;
      info.status = is_lost ? StepStatus::damaged : StepStatus::incomplete;
      info.reason = is_lost ? fmt::format("its {} is gone, and {} says that step {} was saved", kManifestName,
                                          kTrackerName, *last)
                            : fmt::format("it has no {}: the save did not finish", kManifestName);
    } else {
      try {
        info.state = open(*step).manifest().state;
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
    latest.passed_over.push_back({.name = step.path.filename().string(),
                                  .reason = step.reason,
                                  .unfinished = step.status == StepStatus::incomplete});
  }
  return latest;
}

Loaded Store::open(int64_t step) const {
  const fs::path path = directory_ / step_name(step);
  if (!is_plain_directory(path)) data_error("there is no checkpoint {}", path.string());
  return Loaded::open(path);
}

Loaded open_checkpoint(const fs::path& path, std::vector<PassedOver>& passed_over) {
  if (!fs::is_directory(path)) user_error("there is no checkpoint {}", path.string());
  if (has_manifest(path) || parse_step_name(path.filename().string())) return Loaded::open(path);
  Store store(path);
  Latest latest = store.latest_verified();
  passed_over = std::move(latest.passed_over);
  if (!latest.step && fs::exists(path / kHuggingFaceConfig)) {
    user_error(
        "{} is a Hugging Face directory: megalith checkpoint convert {} --to megalith --output DIRECTORY makes a "
        "checkpoint of it",
        path.string(), path.string());
  }
  if (!latest.step) {
    const std::string newest =
        passed_over.empty() ? "" : fmt::format(" ({}: {})", passed_over[0].name, passed_over[0].reason);
    user_error("{} holds no checkpoint that can be used{}", path.string(), newest);
  }
  return store.open(*latest.step);
}

}  // namespace megalith::checkpoint
