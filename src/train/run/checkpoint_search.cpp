#include "train/run/checkpoint_search.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "checkpoint/layout.h"
#include "config/load.h"

namespace megalith::train {

using checkpoint::HeldPart;
using checkpoint::Loaded;
using checkpoint::Manifest;

namespace {

// The same for all parts of one save.
std::string identity_of(const Manifest& part) {
  const Manifest state{.state = part.state, .part = std::nullopt, .shards = {}, .tensors = {}};
  return fmt::format("{}-{}-{}", part.state.step, part.part->ranks, digest_of(encode(state)));
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

// "0,8".
std::vector<int> parse_ranks(const std::string& text) {
  std::vector<int> ranks;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) ranks.push_back(std::stoi(word));
  return ranks;
}

constexpr const char* kNone = "none";
// In front of why there is no choice.
constexpr std::string_view kRefusedInput = "refused input: ";
constexpr std::string_view kRefusedData = "refused data: ";
// In front of what a node holds of other runs.
constexpr std::string_view kForeign = "foreign: ";

// " (runs/a)": where the run that saved this has its directory.
std::string directory_text(const checkpoint::RunState& state) {
  try {
    const std::vector<config::Source> sources{{.name = "checkpoint", .text = state.config}};
    const std::string directory = config::load(sources, {}).exp_manager.explicit_log_dir;
    return directory.empty() ? "" : fmt::format(" ({})", directory);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

CheckpointSearch::CheckpointSearch(Options options) : options_(std::move(options)) {
  if (!options_.tiers.memory.empty()) held_ = checkpoint::MemoryParts(options_.tiers.memory).list();
  for (const std::filesystem::path& directory : {options_.tiers.local, options_.tiers.copies()}) {
    if (directory.empty()) continue;
    for (HeldPart& part : checkpoint::PartStore(directory).list()) held_.push_back(std::move(part));
  }
  set_foreign_aside();
  if (options_.peers != nullptr && rank() == teller()) offer_held();
  if (rank() == teller()) report_held();
  if (rank() == 0) list_candidates();
}

void CheckpointSearch::offer_held() {
  for (const HeldPart& part : held_) {
    try {
      auto file = std::make_shared<File>(checkpoint::open_plain_file(part.shard));
      offers_.push_back(
          options_.peers->offer(part.manifest.shards.front().digests,
                                [file](int64_t offset, std::span<std::byte> into) { file->read_at(offset, into); }));
    } catch (const Error&) {
      // Whoever needs it hears that it is not offered, and looks elsewhere.
    }
  }
}

void CheckpointSearch::report_held() {
  std::string lines;
  for (const HeldPart& part : held_)
    lines += fmt::format("{} {}\n", identity_of(part.manifest), part.manifest.part->rank);
  for (const std::string& foreign : foreign_) lines += fmt::format("{}{}\n", kForeign, foreign);
  options_.world.board().post(held_key(options_.world.rank()), lines);
}

bool CheckpointSearch::is_ours(const checkpoint::RunState& state) const {
  return state.run_id == options_.run_id || (options_.owns_persistent && state.run_id.empty());
}

// What another run has left on a node is neither read nor removed.
void CheckpointSearch::set_foreign_aside() {
  std::set<std::string> foreign;
  std::erase_if(held_, [&](const HeldPart& part) {
    const checkpoint::RunState& state = part.manifest.state;
    if (is_ours(state)) return false;
    foreign.insert(fmt::format("step {} of run {} in {}", state.step, state.run_id, part.shard.parent_path().string()));
    return true;
  });
  foreign_.assign(foreign.begin(), foreign.end());
}

void CheckpointSearch::refuse(ErrorKind kind, const std::string& reason) {
  if (refusal_.empty()) refusal_ = fmt::format("{}{}", kind == ErrorKind::user ? kRefusedInput : kRefusedData, reason);
}

void CheckpointSearch::refuse_foreign(const checkpoint::StepInfo& step) {
  constexpr const char* kKey = "exp_manager.checkpoint_callback_params.dirpath";
  std::string text = fmt::format(
      "{} is a checkpoint of run {}{}, this is run {}{}: give each run its own {}. To begin with its weights, set "
      "model.restore_from_path to it; to go on from it in a new run, model.resume_from_checkpoint",
      step.path.string(), step.state.run_id, directory_text(step.state), options_.run_id,
      options_.run_name.empty() ? "" : " (" + options_.run_name + ")", kKey);
  if (!options_.lost_identity.empty()) {
    const auto start = step.state.extra.find("start");
    text += fmt::format(". If it is this run's own, write the line '{} {}' to {}, which was lost", step.state.run_id,
                        start == step.state.extra.end() ? "1" : start->second, options_.lost_identity.string());
  }
  refuse(ErrorKind::user, text);
}

// A run that was ended in its first save begins anew; one whose checkpoints are lost or damaged does not.
void CheckpointSearch::refuse_to_lose_work() {
  if (!candidates_.empty()) return;
  for (const checkpoint::PassedOver& bad : passed_over_) {
    if (bad.unfinished) continue;
    refuse(ErrorKind::data,
           fmt::format("no checkpoint of this run can be used; the first reason: {}: {}. Put back what is missing, or "
                       "begin anew with another exp_manager.explicit_log_dir, and another dirpath where one is set",
                       bad.name, bad.reason));
  }
}

void CheckpointSearch::list_candidates() {
  list_saves_on_nodes();
  list_persistent();
  refuse_to_lose_work();
  // Of the same step the nodes' own comes first: its shards are tried there and then on the persistent tier.
  std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return a.step != b.step ? a.step > b.step : a.on_nodes > b.on_nodes;
  });
}

void CheckpointSearch::list_saves_on_nodes() {
  std::vector<std::string> foreign = foreign_;
  // Of each save the parts, and of each part the ranks that tell of it.
  std::map<std::string, std::map<int64_t, std::set<int>>> saves;
  for (const HeldPart& part : held_) saves[identity_of(part.manifest)][part.manifest.part->rank].insert(0);
  const int ranks = options_.world.size();
  for (int teller = options_.ranks_per_node; teller < ranks; teller += options_.ranks_per_node) {
    std::istringstream lines(await(held_key(teller), fmt::format("what the node of rank {} holds", teller)));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(kForeign)) {
        foreign.push_back(fmt::format("{} (node of rank {})", line.substr(kForeign.size()), teller));
        continue;
      }
      std::string save;
      int64_t part = 0;
      std::istringstream(line) >> save >> part;
      saves[save][part].insert(teller);
    }
  }
  for (const auto& [save, holders] : saves) {
    const SaveName name = parse_save(save);
    if (static_cast<int64_t>(holders.size()) == name.ranks) {
      std::string text = save;
      for (const auto& [part, tellers] : holders) text += fmt::format(" {}", fmt::join(tellers, ","));
      candidates_.push_back({.step = name.step, .on_nodes = true, .text = text});
    } else {
      passed_over_.push_back({.name = fmt::format("step {} on the nodes", name.step),
                              .reason = fmt::format("{} of {} parts are there", holders.size(), name.ranks),
                              .unfinished = true});
    }
  }
  for (const std::string& other : foreign) {
    passed_over_.push_back({.name = other,
                            .reason = fmt::format("it is another run's, this is run {}", options_.run_id),
                            // Where nobody knows which run this is, it may well be its own.
                            .unfinished = options_.lost_identity.empty()});
  }
}

void CheckpointSearch::list_persistent() {
  const checkpoint::Store store(options_.tiers.persistent);
  const int64_t last = store.last_committed().value_or(-1);
  bool last_is_there = last < 0;
  for (const checkpoint::StepInfo& step : store.list()) {
    last_is_there = last_is_there || step.step == last;
    if (step.status != checkpoint::StepStatus::committed) {
      passed_over_.push_back({.name = step.path.string(),
                              .reason = step.reason,
                              .unfinished = step.status == checkpoint::StepStatus::incomplete});
    } else if (is_ours(step.state)) {
      candidates_.push_back({.step = step.step, .on_nodes = false, .text = std::to_string(step.step)});
    } else {
      refuse_foreign(step);
    }
  }
  if (!last_is_there) {
    passed_over_.push_back(
        {.name = store.directory_of(last).string(),
         .reason = fmt::format("it is gone, and {} says that it was saved", checkpoint::kTrackerName)});
  }
}

std::string CheckpointSearch::choose() const {
  std::string choice = given_ < candidates_.size() ? candidates_[given_].text : kNone;
  if (!refusal_.empty()) choice = refusal_;
  if (rank() == 0) options_.world.board().post(choice_key(given_), choice);
  return await(choice_key(given_), "the choice of a checkpoint by rank 0");
}

std::optional<Loaded> CheckpointSearch::next() {
  const std::string choice = choose();
  ++given_;
  if (choice == kNone) return std::nullopt;
  if (choice.starts_with(kRefusedInput)) user_error("{}", choice.substr(kRefusedInput.size()));
  if (choice.starts_with(kRefusedData)) data_error("{}", choice.substr(kRefusedData.size()));
  return parse_save(choice).ranks > 0 ? open_save(choice) : open_persistent(parse_save(choice).step);
}

// `choice`: the save, and for each of its parts the ranks that tell of it. The first of them posts its manifest.
Loaded CheckpointSearch::open_save(const std::string& choice) const {
  std::istringstream words(choice);
  std::string save;
  words >> save;
  const SaveName name = parse_save(save);
  const std::string where = fmt::format("step {} on the nodes", name.step);
  std::vector<Manifest> parts;
  Holders holders;
  for (int64_t part = 0; part < name.ranks; ++part) {
    std::string tellers;
    words >> tellers;
    const std::vector<int> ranks = parse_ranks(tellers);
    parts.push_back(part_of(save, part, ranks.front()));
    holders[parts.back().shards.front().file] = ranks;
  }
  return with_places(where, merge(parts, where), holders);
}

Manifest CheckpointSearch::part_of(const std::string& save, int64_t part, int holder) const {
  const auto own = std::find_if(held_.begin(), held_.end(), [&](const HeldPart& held) {
    return held.manifest.part->rank == part && identity_of(held.manifest) == save;
  });
  if (holder == rank()) options_.world.board().post(part_key(save, part), encode(own->manifest));
  const std::string what = fmt::format("part {} of step {}", part, parse_save(save).step);
  return checkpoint::decode_manifest(await(part_key(save, part), what), what);
}

Loaded CheckpointSearch::open_persistent(int64_t step) const {
  const std::filesystem::path directory = checkpoint::Store(options_.tiers.persistent).directory_of(step);
  return with_places(directory.string(), Loaded::open(directory).manifest(), {});
}

// This node first, then others, then the persistent tier.
Loaded CheckpointSearch::with_places(const std::string& name, Manifest manifest, const Holders& holders) const {
  const std::filesystem::path persistent =
      checkpoint::Store(options_.tiers.persistent).directory_of(manifest.state.step);
  return Loaded(name, std::move(manifest), [&](const checkpoint::ShardInfo& shard) {
    std::vector<checkpoint::Place> places;
    for (const HeldPart& part : held_) {
      if (part.manifest.shards.front().digests == shard.digests) places.emplace_back(part.shard);
    }
    const auto elsewhere = holders.find(shard.file);
    if (options_.peers != nullptr && elsewhere != holders.end()) {
      for (const int holder : elsewhere->second) {
        if (holder != teller()) places.push_back(options_.peers->place(holder, shard.digests));
      }
    }
    places.emplace_back(persistent / shard.file);
    return places;
  });
}

std::string CheckpointSearch::await(const std::string& key, const std::string& what) const {
  return options_.world.board().await(key, options_.deadline, what);
}

}  // namespace megalith::train
