#include "checkpoint/holdings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "checkpoint/file_names.h"
#include "checkpoint/store.h"
#include "core/error.h"
#include "core/hash/digest.h"

namespace megalith::checkpoint {

namespace {

using Tier = HeldSave::Tier;

// With the directory of each place, what it holds.
struct Shelf {
  Tier tier;
  std::vector<HeldPart> parts;
};

std::vector<Shelf> shelves_of(const NodeDirectories& node) {
  std::vector<Shelf> shelves;
  if (!node.memory.empty()) shelves.push_back({Tier::memory, MemoryParts(node.memory).list()});
  if (!node.local.empty()) shelves.push_back({Tier::local, PartStore(node.local).list()});
  if (!node.copies.empty()) shelves.push_back({Tier::copies, PartStore(node.copies).list()});
  return shelves;
}

bool is_before(const HeldSave& a, const HeldSave& b) {
  return std::tuple(b.step, b.generation, a.tier, a.ranks) < std::tuple(a.step, a.generation, b.tier, b.ranks);
}

// The manifest first: what is left of a removal that was cut short is not a part.
void remove_part(const HeldPart& part) {
  ::unlink(part.manifest_path().c_str());
  ::unlink(part.shard.c_str());
  const std::filesystem::path directory = part.shard.parent_path();
  if (parse_step_name(directory.filename().string())) ::rmdir(directory.c_str());
}

}  // namespace

std::vector<HeldPart> parts_on(const NodeDirectories& node) {
  std::vector<HeldPart> parts;
  for (Shelf& shelf : shelves_of(node)) std::move(shelf.parts.begin(), shelf.parts.end(), std::back_inserter(parts));
  return parts;
}

std::vector<std::string> remove_given_up(const NodeDirectories& node, const std::string& run_id,
                                         const Lineage& lineage) {
  std::vector<std::string> removed;
  for (const Shelf& shelf : shelves_of(node)) {
    for (const HeldPart& part : shelf.parts) {
      const RunState& state = part.manifest.state;
      if (state.run_id != run_id || lineage.standing_of(state) != Lineage::Standing::given_up) continue;
      if (shelf.tier == Tier::memory) {
        ::unlink(part.manifest_path().c_str());
      } else {
        remove_part(part);
      }
      removed.push_back(fmt::format("part {} of step {} in {}: {}", part.manifest.part->rank, state.step,
                                    part.shard.parent_path().string(), lineage.why_not(state)));
    }
  }
  return removed;
}

void remove_parts(const NodeDirectories& node, const std::string& run_id) {
  for (const HeldPart& part : parts_on(node)) {
    if (part.manifest.state.run_id == run_id) remove_part(part);
  }
}

SaveId SaveId::of(const Manifest& part) {
  const Manifest state{.state = part.state, .part = std::nullopt, .shards = {}, .tensors = {}};
  return {.step = part.state.step,
          .ranks = part.part->ranks,
          .generation = generation_of(part.state),
          .state = digest_of(encode(state))};
}

std::string SaveId::to_text() const {
  return fmt::format("{}-{}-{}-{}", step, ranks, generation, state);
}

std::optional<SaveId> SaveId::from_text(std::string_view text) {
  SaveId save;
  for (int64_t* number : {&save.step, &save.ranks, &save.generation}) {
    const size_t dash = text.find('-');
    if (dash == std::string_view::npos) return std::nullopt;
    const std::optional<int64_t> parsed = parse_number(text.substr(0, dash));
    if (!parsed) return std::nullopt;
    *number = *parsed;
    text.remove_prefix(dash + 1);
  }
  save.state = text;
  if (save.ranks < 1 || !is_digest(save.state)) return std::nullopt;
  return save;
}

std::vector<HeldSave> saves_on(const NodeDirectories& node, const std::string& run_id) {
  std::vector<HeldSave> saves;
  for (const Shelf& shelf : shelves_of(node)) {
    std::map<std::array<int64_t, 3>, std::set<int64_t>> parts;
    for (const HeldPart& part : shelf.parts) {
      const RunState& state = part.manifest.state;
      if (state.run_id == run_id)
        parts[{state.step, generation_of(state), part.manifest.part->ranks}].insert(part.manifest.part->rank);
    }
    for (const auto& [save, held] : parts) {
      const auto [step, generation, ranks] = save;
      saves.push_back({step, generation, ranks, shelf.tier, {held.begin(), held.end()}});
    }
  }
  std::sort(saves.begin(), saves.end(), is_before);
  return saves;
}

std::vector<HeldSave> saves_in(const std::filesystem::path& persistent, const std::string& run_id) {
  const Store store(persistent);
  std::vector<HeldSave> saves;
  for (const StepInfo& step : store.list()) {
    if (step.status != StepStatus::committed || step.state.run_id != run_id) continue;
    HeldSave save{.step = step.step,
                  .generation = generation_of(step.state),
                  .ranks = std::ssize(store.open(step.step).manifest().shards),
                  .tier = Tier::persistent,
                  .parts = {}};
    for (int64_t part = 0; part < save.ranks; ++part) save.parts.push_back(part);
    saves.push_back(std::move(save));
  }
  return saves;
}

}  // namespace megalith::checkpoint
