#include "train/run/checkpoint_search.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <sstream>
#include <tuple>

#include "checkpoint/file_names.h"
#include "checkpoint/lineage.h"
#include "config/load.h"
#include "train/run/named_step.h"

namespace megalith::train {

using checkpoint::HeldPart;
using checkpoint::Loaded;
using checkpoint::Manifest;

namespace {

// The same for all parts of one save.
std::string identity_of(const Manifest& part) {
  return checkpoint::SaveId::of(part).to_text();
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

// As rank 0 tells it.
checkpoint::SaveId parse_save(const std::string& save) {
  const std::optional<checkpoint::SaveId> id = checkpoint::SaveId::from_text(save);
  MEGALITH_CHECK(id, "'{}' is no save", save);
  return *id;
}

// "0,8,@spare".
std::vector<std::string> parse_holders(const std::string& text) {
  std::vector<std::string> holders;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) holders.push_back(word);
  return holders;
}

constexpr const char* kNone = "none";
// In front of a step on the persistent tier.
constexpr std::string_view kPersistent = "persistent ";
// In front of a node without ranks; such holders come after all that are numbers.
constexpr char kNode = '@';
// In front of a kind of error, and why there is no choice.
constexpr std::string_view kRefused = "refused ";
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

// All ranks search together.
StatusPage::Group waits_on(comm::World& world) {
  std::vector<int> ranks(static_cast<size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return world.status_page().add_group("search", ranks, world.rank());
}
}  // namespace

CheckpointSearch::CheckpointSearch(Options options) : options_(std::move(options)), waits_(waits_on(options_.world)) {
  held_ = checkpoint::parts_on(options_.tiers.on_node());
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
  if (refusal_.empty()) refusal_ = fmt::format("{}{}{}", kRefused, static_cast<int>(kind), reason);
}

void CheckpointSearch::refuse_foreign(const checkpoint::StepInfo& step) {
  constexpr const char* kKey = "exp_manager.checkpoint_callback_params.dirpath";
  std::string text = fmt::format(
      "{} is a checkpoint of run {}{}, this is run {}{}: give each run its own {}. To begin with its weights, set "
      "model.restore_from_path to it; to go on from it in a new run, model.resume_from_checkpoint",
      step.path.string(), step.state.run_id, directory_text(step.state), options_.run_id,
      options_.run_name.empty() ? "" : " (" + options_.run_name + ")", kKey);
  if (!options_.lost_identity.empty()) {
    text += fmt::format(". If it is this run's own, write the line '{} {}' to {}, which was lost", step.state.run_id,
                        std::max<int64_t>(1, checkpoint::generation_of(step.state)), options_.lost_identity.string());
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
  if (options_.lineage.is_known()) {
    keep_named_step();
  } else {
    refuse_to_lose_work();
  }
  // Of the same step the nodes' own comes first: its shards are tried there and then on the persistent tier.
  std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.step, a.on_nodes, a.generation) > std::tuple(b.step, b.on_nodes, b.generation);
  });
}

// What the roster says is all there is. A generation that finds something newer than itself is out of date, and one
// that begins anew beside what may still be loaded would lose it.
void CheckpointSearch::keep_named_step() {
  using Standing = checkpoint::Lineage::Standing;
  const checkpoint::Lineage& lineage = options_.lineage;
  for (const Candidate& found : candidates_) {
    if (lineage.standing_of(found.generation, found.step) == Standing::newer) {
      refuse(ErrorKind::io, fmt::format("generation {} saved step {}: this is generation {}, whose place it has taken",
                                        found.generation, found.step, lineage.generation()));
    }
    if (lineage.begins_anew() && !found.on_nodes &&
        lineage.before_last().standing_of(found.generation, found.step) == Standing::belongs)
      refuse(ErrorKind::io, why_not_from(lineage, fmt::format("{} holds step {} of this run",
                                                              options_.tiers.persistent.string(), found.step)));
  }
  std::erase_if(candidates_, [&](const Candidate& found) {
    return found.step != lineage.from_step() || lineage.standing_of(found.generation, found.step) != Standing::belongs;
  });
  if (candidates_.empty() && !lineage.begins_anew())
    refuse(ErrorKind::io, why_not_from(lineage, why_not_there(lineage.from_step())));
}

std::string CheckpointSearch::why_not_there(int64_t step) const {
  for (const checkpoint::PassedOver& bad : passed_over_) {
    if (bad.step == step) return fmt::format("{}: {}", bad.name, bad.reason);
  }
  return "neither the nodes nor the persistent tier have it";
}

void CheckpointSearch::add_told_by_ranks(Saves& saves, std::vector<std::string>& foreign) {
  for (const HeldPart& part : held_) saves[identity_of(part.manifest)][part.manifest.part->rank].insert("0");
  const int ranks = options_.world.size();
  for (int teller = options_.ranks_per_node; teller < ranks; teller += options_.ranks_per_node) {
    std::istringstream lines(await(held_key(teller), fmt::format("what the node of rank {} holds", teller), teller));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(kForeign)) {
        foreign.push_back(fmt::format("{} (node of rank {})", line.substr(kForeign.size()), teller));
        continue;
      }
      std::string save;
      int64_t part = 0;
      std::istringstream(line) >> save >> part;
      saves[save][part].insert(std::to_string(teller));
    }
  }
}

void CheckpointSearch::add_held_by_nodes_without_ranks(Saves& saves) {
  if (options_.holders == nullptr) return;
  for (const std::string& node : options_.holders->nodes()) {
    try {
      for (const checkpoint::RemoteHolders::ListedPart& part : options_.holders->list(node)) {
        const std::string save = part.save.to_text();
        saves[save][part.part].insert(kNode + node);
        listed_.emplace(std::pair(save, part.part), part);
      }
    } catch (const Error& error) {
      passed_over_.push_back(
          {.name = fmt::format("what node {} holds", node), .reason = error.what(), .unfinished = true});
    }
  }
}

bool CheckpointSearch::fetch_part(const std::string& save, int64_t part, const std::string& node) {
  try {
    Manifest manifest = options_.holders->manifest(node, listed_.at({save, part}));
    if (!is_ours(manifest.state)) return false;
    fetched_.emplace(std::pair(save, part), std::move(manifest));
    return true;
  } catch (const Error& error) {
    passed_over_.push_back(
        {.name = fmt::format("what node {} holds", node), .reason = error.what(), .unfinished = true});
    return false;
  }
}

// Now, so that a node that goes meanwhile or lies is no candidate. Drops holders that do not give what they list.
bool CheckpointSearch::fetch_parts_without_ranks(const std::string& save,
                                                 std::map<int64_t, std::set<std::string>>& holders) {
  for (auto& [part, who] : holders) {
    while (!who.empty() && who.begin()->front() == kNode && !fetch_part(save, part, who.begin()->substr(1)))
      who.erase(who.begin());
    if (who.empty()) return false;
  }
  return true;
}

void CheckpointSearch::list_saves_on_nodes() {
  std::vector<std::string> foreign = foreign_;
  Saves saves;
  add_told_by_ranks(saves, foreign);
  add_held_by_nodes_without_ranks(saves);
  for (auto& [save, holders] : saves) {
    const checkpoint::SaveId id = parse_save(save);
    if (std::ssize(holders) == id.ranks && fetch_parts_without_ranks(save, holders)) {
      std::string text = save;
      for (const auto& [part, who] : holders) text += fmt::format(" {}", fmt::join(who, ","));
      candidates_.push_back({.step = id.step, .generation = id.generation, .on_nodes = true, .text = text});
    } else {
      const auto there =
          std::count_if(holders.begin(), holders.end(), [](const auto& part) { return !part.second.empty(); });
      passed_over_.push_back({.name = fmt::format("step {} on the nodes", id.step),
                              .reason = fmt::format("{} of {} parts are there", there, id.ranks),
                              .unfinished = true,
                              .step = id.step});
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
                              .unfinished = step.status == checkpoint::StepStatus::incomplete,
                              .step = step.step});
    } else if (is_ours(step.state)) {
      candidates_.push_back({.step = step.step,
                             .generation = checkpoint::generation_of(step.state),
                             .on_nodes = false,
                             .text = fmt::format("{}{}", kPersistent, step.step)});
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
  return await(choice_key(given_), "the choice of a checkpoint by rank 0", 0);
}

std::optional<Loaded> CheckpointSearch::next() {
  const std::string choice = choose();
  ++given_;
  if (choice == kNone) return std::nullopt;
  if (choice.starts_with(kRefused)) {
    const std::string refusal = choice.substr(kRefused.size());
    throw Error(static_cast<ErrorKind>(refusal.front() - '0'), refusal.substr(1));
  }
  if (choice.starts_with(kPersistent))
    return open_persistent(*checkpoint::parse_number(choice.substr(kPersistent.size())));
  return open_save(choice);
}

// `choice`: the save, and for each of its parts who has it. The first of them posts its manifest; rank 0 does so for a
// node without ranks.
Loaded CheckpointSearch::open_save(const std::string& choice) const {
  std::istringstream words(choice);
  std::string save;
  words >> save;
  const checkpoint::SaveId id = parse_save(save);
  const std::string where = fmt::format("step {} on the nodes", id.step);
  std::vector<Manifest> parts;
  Holders holders;
  for (int64_t part = 0; part < id.ranks; ++part) {
    std::string who;
    words >> who;
    const std::vector<std::string> of_part = parse_holders(who);
    parts.push_back(part_of(save, part, of_part.front()));
    holders[parts.back().shards.front().file] = of_part;
  }
  return with_places(where, merge(parts, where), holders);
}

Manifest CheckpointSearch::part_of(const std::string& save, int64_t part, const std::string& holder) const {
  const bool is_fetched = holder.front() == kNode;
  if (is_fetched && rank() == 0) options_.world.board().post(part_key(save, part), encode(fetched_.at({save, part})));
  if (!is_fetched && std::stoi(holder) == rank()) {
    const auto own = std::find_if(held_.begin(), held_.end(), [&](const HeldPart& held) {
      return held.manifest.part->rank == part && identity_of(held.manifest) == save;
    });
    options_.world.board().post(part_key(save, part), encode(own->manifest));
  }
  const std::string what = fmt::format("part {} of step {}", part, parse_save(save).step);
  return checkpoint::decode_manifest(await(part_key(save, part), what, is_fetched ? 0 : std::stoi(holder)), what);
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
    std::vector<checkpoint::ShardPlace> places;
    for (const HeldPart& part : held_) {
      if (part.manifest.shards.front().digests == shard.digests) places.emplace_back(part.shard);
    }
    const auto elsewhere = holders.find(shard.file);
    for (const std::string& holder : elsewhere == holders.end() ? std::vector<std::string>() : elsewhere->second) {
      const bool has_ranks = holder.front() != kNode;
      if (has_ranks && options_.peers != nullptr && std::stoi(holder) != teller())
        places.push_back(options_.peers->place(std::stoi(holder), shard.digests));
      if (!has_ranks && options_.holders != nullptr)
        places.push_back(options_.holders->place(holder.substr(1), shard.digests));
    }
    places.emplace_back(persistent / shard.file);
    return places;
  });
}

std::string CheckpointSearch::await(const std::string& key, const std::string& what, int from) const {
  const StatusPage::Inside waiting(waits_, {.operation = "await", .peers = {from, -1}, .is_exchange = true});
  return options_.world.board().await(key, options_.deadline, what);
}

}  // namespace megalith::train
