#include "train/checkpoint_search.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "checkpoint/layout.h"
#include "core/error.h"

namespace megalith::train {

using checkpoint::HeldPart;
using checkpoint::Loaded;
using checkpoint::Manifest;

namespace {

// The same for all parts of one save.
std::string identity_of(const Manifest& part) {
  const Manifest state{.state = part.state, .part = std::nullopt, .shards = {}, .tensors = {}};
  return fmt::format("{}-{}-{}", part.state.step, part.part->ranks, checkpoint::digest_of(encode(state)));
}

std::string held_key(int rank) {
  return fmt::format("load/held/{}", rank);
}
std::string part_key(const std::string& save, int64_t rank) {
  return fmt::format("load/part/{}/{}", save, rank);
}
std::string choice_key(size_t attempt) {
  return fmt::format("load/choice/{}", attempt);
}

// "20-8-<digest>": step and ranks.
struct SaveName {
  int64_t step = 0;
  int64_t ranks = 0;
};
SaveName parse_save(const std::string& save) {
  SaveName name;
  char dash = 0;
  std::istringstream(save) >> name.step >> dash >> name.ranks;
  return name;
}

constexpr const char* kNone = "none";

}  // namespace

CheckpointSearch::CheckpointSearch(Options options) : options_(std::move(options)) {
  if (!options_.tiers.memory.empty()) held_ = checkpoint::MemoryParts(options_.tiers.memory).list();
  if (!options_.tiers.local.empty()) {
    for (HeldPart& part : checkpoint::PartStore(options_.tiers.local).list()) held_.push_back(std::move(part));
  }
  // What another run has left there is none of ours.
  std::erase_if(held_, [&](const HeldPart& part) { return part.manifest.state.run_id != options_.run_id; });
  report_held();
  if (is_first()) list_candidates();
}

// Ranks say what their node has.
void CheckpointSearch::report_held() {
  if (options_.world == nullptr) return;
  std::string lines;
  for (const HeldPart& part : held_)
    lines += fmt::format("{} {}\n", identity_of(part.manifest), part.manifest.part->rank);
  options_.world->board().post(held_key(options_.world->rank()), lines);
}

void CheckpointSearch::list_candidates() {
  // Of each save the parts, and of each part the first rank that holds it.
  std::map<std::string, std::map<int64_t, int>> saves;
  for (const HeldPart& part : held_) saves[identity_of(part.manifest)].emplace(part.manifest.part->rank, 0);
  for (int rank = 1; options_.world != nullptr && rank < options_.world->size(); ++rank) {
    std::istringstream lines(await(held_key(rank), fmt::format("what the node of rank {} holds", rank)));
    std::string save;
    int64_t of_rank = 0;
    while (lines >> save >> of_rank) saves[save].emplace(of_rank, rank);
  }
  for (const auto& [save, holders] : saves) {
    const SaveName name = parse_save(save);
    if (static_cast<int64_t>(holders.size()) == name.ranks) {
      std::string text = save;
      for (const auto& [part, holder] : holders) text += fmt::format(" {}", holder);
      candidates_.push_back({.step = name.step, .on_nodes = true, .text = text});
    } else {
      passed_over_.push_back({.name = fmt::format("step {} on the nodes", name.step),
                              .reason = fmt::format("{} of {} parts are there", holders.size(), name.ranks),
                              .unfinished = true});
    }
  }
  for (const checkpoint::StepInfo& step : checkpoint::Store(options_.tiers.persistent).list()) {
    if (step.status == checkpoint::StepStatus::committed) {
      candidates_.push_back({.step = step.step, .on_nodes = false, .text = std::to_string(step.step)});
    } else {
      passed_over_.push_back({.name = step.path.filename().string(),
                              .reason = step.reason,
                              .unfinished = step.status == checkpoint::StepStatus::incomplete});
    }
  }
  // Of the same step the nodes' own comes first: its shards are tried there and then on the persistent tier.
  std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return a.step != b.step ? a.step > b.step : a.on_nodes > b.on_nodes;
  });
}

std::string CheckpointSearch::choose() const {
  const std::string choice = given_ < candidates_.size() ? candidates_[given_].text : kNone;
  if (options_.world == nullptr) return choice;
  if (is_first()) options_.world->board().post(choice_key(given_), choice);
  return await(choice_key(given_), "the choice of a checkpoint by rank 0");
}

std::optional<Loaded> CheckpointSearch::next() {
  const std::string choice = choose();
  ++given_;
  if (choice == kNone) return std::nullopt;
  return parse_save(choice).ranks > 0 ? open_save(choice) : open_persistent(parse_save(choice).step);
}

// `choice`: the save, and for each of its parts the rank that posts its manifest.
Loaded CheckpointSearch::open_save(const std::string& choice) const {
  std::istringstream words(choice);
  std::string save;
  words >> save;
  const SaveName name = parse_save(save);
  const std::string where = fmt::format("step {} on the nodes", name.step);
  std::vector<Manifest> parts;
  for (int64_t part = 0; part < name.ranks; ++part) {
    int holder = 0;
    words >> holder;
    const auto own = std::find_if(held_.begin(), held_.end(), [&](const HeldPart& held) {
      return held.manifest.part->rank == part && identity_of(held.manifest) == save;
    });
    if (options_.world == nullptr) {
      parts.push_back(own->manifest);
      continue;
    }
    if (holder == options_.world->rank()) options_.world->board().post(part_key(save, part), encode(own->manifest));
    parts.push_back(
        checkpoint::decode_manifest(await(part_key(save, part), fmt::format("part {} of {}", part, where)), where));
  }
  return with_places(where, merge(parts, where));
}

Loaded CheckpointSearch::open_persistent(int64_t step) const {
  const std::filesystem::path directory = checkpoint::Store(options_.tiers.persistent).directory_of(step);
  return with_places(directory.string(), Loaded::open(directory).manifest());
}

Loaded CheckpointSearch::with_places(const std::string& name, Manifest manifest) const {
  const std::filesystem::path persistent =
      checkpoint::Store(options_.tiers.persistent).directory_of(manifest.state.step);
  return Loaded(name, std::move(manifest), [&](const checkpoint::ShardInfo& shard) {
    std::vector<std::filesystem::path> places;
    for (const HeldPart& part : held_) {
      if (part.manifest.shards.front().digests == shard.digests) places.push_back(part.shard);
    }
    places.push_back(persistent / shard.file);
    return places;
  });
}

std::string CheckpointSearch::await(const std::string& key, const std::string& what) const {
  return options_.world->board().await(key, options_.deadline, what);
}

}  // namespace megalith::train
