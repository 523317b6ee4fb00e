#include "checkpoint/nodes/part_store.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>

#include "checkpoint/file_names.h"
#include "core/error.h"

namespace megalith::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kUnfinishedSuffix = ".part";  // as replace_file() writes it

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code status;
  for (fs::directory_iterator entry(directory, status), end; !status && entry != end; entry.increment(status))
    entries.push_back(entry->path());
  return entries;
}

std::vector<fs::path> steps_in(const fs::path& directory) {
  std::vector<fs::path> steps = entries_of(directory);
  std::erase_if(steps, [](const fs::path& path) {
    return !parse_step_name(path.filename().string()) || !is_plain_directory(path);
  });
  return steps;
}

// The committed parts in a directory.
std::vector<HeldPart> parts_in(const fs::path& directory) {
  std::vector<HeldPart> parts;
  for (const fs::path& path : entries_of(directory)) {
    const std::optional<ShardName> name = parse_part_name(path.filename().string());
    if (!name) continue;
    try {
      Manifest manifest = decode_manifest(read_plain_text(path), path.string());
      if (!manifest.part || manifest.part->rank != name->rank || manifest.shards.size() != 1 ||
          manifest.shards.front().file != shard_name(*name))
        continue;
      const fs::path shard = directory / manifest.shards.front().file;
      check_plain_file(shard, manifest.shards.front().digests.bytes);
      parts.push_back({.manifest = std::move(manifest), .shard = shard});
    } catch (const Error&) {
      // Torn by a crash, or its shard was set aside: the step is looked for elsewhere.
    }
  }
  return parts;
}

// Of a shard, the manifest of a part, or one that was being written. Nothing for what was set aside.
std::optional<int64_t> rank_of_file(std::string_view name) {
  if (name.ends_with(kUnfinishedSuffix)) name.remove_suffix(kUnfinishedSuffix.size());
  for (const auto& parsed : {parse_part_name(name), parse_shard_name(name)}) {
    if (parsed) return parsed->rank;
  }
  return std::nullopt;
}

std::string part_name_beside(const std::string& shard) {
  return part_name(*parse_shard_name(shard));
}

}  // namespace

fs::path HeldPart::manifest_path() const {
  return shard.parent_path() / part_name_beside(shard.filename().string());
}

void PartStore::save(const RunState& state, const Part& part, const ShardContent& content, int64_t generation) const {
  const Store store(directory_);
  const Manifest manifest = store.write_part(state, part, content, generation);
  const fs::path commit = store.directory_of(state.step) / part_name_beside(manifest.shards.front().file);
  try {
    replace_file(commit, encode(manifest));
    sync_directory(directory_);
  } catch (...) {
    ::unlink((commit.string() + std::string(kUnfinishedSuffix)).c_str());
    ::unlink(commit.c_str());
    store.discard(manifest);
    throw;
  }
}

void PartStore::retain(int64_t rank, const Retention& retention) const {
  std::set<fs::path> kept;
  int64_t places = retention.keep;
  for (const HeldPart& held : list()) {
    const RunState& state = held.manifest.state;
    if (held.manifest.part->rank != rank) continue;
    const bool is_foreign = !retention.run_id.empty() && state.run_id != retention.run_id;
    if (!is_foreign && places-- <= 0 && state.step != retention.protected_step) continue;
    kept.insert(held.shard);
    kept.insert(held.manifest_path());
  }
  for (const fs::path& step_directory : steps_in(directory_)) {
    std::vector<fs::path> files = entries_of(step_directory);
    std::erase_if(files, [&](const fs::path& file) {
      return rank_of_file(file.filename().string()) != rank || kept.contains(file);
    });
    // The manifest ("part-...") first: what is left of a removal that was cut short is not a part.
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) ::unlink(file.c_str());
    if (!files.empty()) ::rmdir(step_directory.c_str());
  }
}

std::vector<HeldPart> PartStore::list() const {
  std::vector<HeldPart> parts;
  for (const fs::path& path : steps_in(directory_)) {
    for (HeldPart& part : parts_in(path)) parts.push_back(std::move(part));
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const HeldPart& a, const HeldPart& b) { return a.manifest.state.step > b.manifest.state.step; });
  return parts;
}

// In the place of a generation their names have the number of the image.
fs::path MemoryParts::shard_of(int64_t rank, int64_t image) const {
  return directory_ / shard_name({.generation = image, .rank = rank});
}

void MemoryParts::commit(const RunState& state, const Part& part, const Content& content) const {
  const ShardName name{.generation = content.image, .rank = part.rank};
  const Manifest manifest =
      manifest_of_part(state, part, {.file = shard_name(name), .digests = content.digests}, content.pieces);
  replace_file(directory_ / part_name(name), encode(manifest));
}

void MemoryParts::revoke(int64_t rank, int64_t image) const {
  ::unlink((directory_ / part_name({.generation = image, .rank = rank})).c_str());
}

void MemoryParts::remove(int64_t rank) const {
  for (int64_t image = 0; image < kMostImages; ++image) {
    revoke(rank, image);
    ::unlink(shard_of(rank, image).c_str());
  }
}

void MemoryParts::remove_from(int64_t first_rank) const {
  for (const fs::path& path : entries_of(directory_)) {
    if (rank_of_file(path.filename().string()) >= first_rank) ::unlink(path.c_str());
  }
}

std::vector<HeldPart> MemoryParts::list() const {
  return parts_in(directory_);
}

std::vector<int64_t> MemoryParts::steps_of(int64_t rank, const std::string& run_id) const {
  std::vector<int64_t> steps(kMostImages, -1);
  for (const HeldPart& part : list()) {
    for (int64_t image = 0; image < kMostImages; ++image) {
      if (part.shard == shard_of(rank, image) && part.manifest.state.run_id == run_id)
        steps[static_cast<size_t>(image)] = part.manifest.state.step;
    }
  }
  return steps;
}

}  // namespace megalith::checkpoint
