#include "resilience/simulation/fake_run.h"

#include <algorithm>
#include <numeric>

#include "resilience/decide/holdings.h"

namespace megalith::resilience::testing {

namespace {
constexpr double kBoot = 0.7;
constexpr double kLoad = 0.8;
constexpr Section kSectionOf[] = {Section::boot, Section::rendezvous, Section::load, Section::step,
                                  Section::end};  // by Stage

bool is_there(const Process& process) {
  return process.is_alive() && process.hangs_since < 0;
}
}  // namespace

FakeRun::FakeRun(FakeRunOptions options, size_t nodes, std::mt19937_64& random)
    : options_(options), random_(random), on_node_(nodes), memory_(nodes) {}

Generation* FakeRun::find(int64_t generation) {
  const auto found = generations_.find(generation);
  return found == generations_.end() ? nullptr : &found->second;
}

Generation& FakeRun::generation_of(const Roster& roster) {
  Generation& generation = generations_[roster.generation];
  if (generation.ranks.empty()) {
    generation.roster = roster;
    generation.ranks.resize(static_cast<size_t>(roster.world_size));
    generation.peers_notice = uniform(0, 1) < 0.7;
  }
  return generation;
}

Process& FakeRun::start(size_t node, const Roster& roster, int64_t rank, double now) {
  Generation& generation = generation_of(roster);
  processes_.push_back(std::make_unique<Process>(
      Process{.generation = roster.generation, .rank = rank, .node = node, .pid = next_pid_++, .began = now}));
  Process* const process = processes_.back().get();
  on_node_[node].push_back(process);
  (rank == RankReport::kStore ? generation.store : generation.ranks[static_cast<size_t>(rank)]) = process;
  generation.moved = now;
  return *process;
}

void FakeRun::kill(Process& process, int64_t signal, double now) {
  if (!process.is_alive() || process.is_unkillable) return;
  process.end = ProcessEnd{.signal = signal};
  process.ending = {};
  troubled_.insert(process.node);
  if (Generation* const generation = find(process.generation)) {
    generation->has_trouble = true;
    generation->moved = std::max(generation->moved, now - 0.1);
  }
}

void FakeRun::lose_node(size_t node, double now) {
  for (Process* const process : on_node_[node]) {
    if (process->is_alive()) {
      process->is_unkillable = false;
      kill(*process, 9, now);
    }
    process->is_lost = true;
  }
  on_node_[node].clear();
  memory_[node].clear();
}

std::vector<Holding> FakeRun::holdings_on(size_t node) const {
  std::vector<Holding> held = memory_[node];
  held.insert(held.end(), persistent_.begin(), persistent_.end());
  return held;
}

bool FakeRun::all(const Generation& generation, bool (*condition)(const Process&)) const {
  return std::all_of(generation.ranks.begin(), generation.ranks.end(),
                     [&](const Process* process) { return process != nullptr && condition(*process); });
}

void FakeRun::begin_stage(Generation& generation, Stage stage, double now) {
  generation.longest[static_cast<size_t>(kSectionOf[static_cast<int>(generation.stage)])] =
      now - generation.stage_began;
  generation.stage = stage;
  generation.stage_began = generation.moved = generation.step_began = now;
}

void FakeRun::end_all(Generation& generation, EndingKind kind, double now) {
  for (Process* const process : generation.ranks) {
    if (!process->is_alive() || process->ends_at >= 0) continue;
    process->ending.kind = kind;
    process->ends_at = now + uniform(0, 1.5);
  }
}

// The step that the roster names, from whoever holds its parts now.
void FakeRun::load(Generation& generation, double now) {
  const int64_t from = generation.roster.from_step;
  std::vector<std::vector<Holding>> held = memory_;
  held.push_back(persistent_);
  const bool is_there_still =
      from < 0 || newest_covered_step(held, [&](const Holding& holding) { return holding.step == from; }) == from;
  if (!is_there_still) {
    generation.has_trouble = true;
    for (Process* const process : generation.ranks) {
      if (!process->is_alive() || process->ends_at >= 0) continue;
      process->ending = {.kind = EndingKind::data, .message = "a part is missing"};
      process->ends_at = now + uniform(0, 0.5);
    }
    return;
  }
  const auto is_void = [&](const Holding& holding) {
    return holding.generation < generation.roster.generation && holding.step > from;
  };
  for (std::vector<Holding>& node : memory_) std::erase_if(node, is_void);
  std::erase_if(persistent_, is_void);
  generation.step = from + 1;
  begin_stage(generation, Stage::steps, now);
}

// Every rank keeps its part, and a copy of that of the node before it. Two steps are kept.
void FakeRun::keep_step(Generation& generation) {
  const Roster& roster = generation.roster;
  const int64_t per_node = roster.ranks_per_node;
  const auto nodes = static_cast<int64_t>(roster.nodes.size());
  for (int64_t index = 0; index < nodes; ++index) {
    std::set<int64_t> parts;
    for (const int64_t owner : {index, (index + nodes - 1) % nodes}) {
      for (int64_t local = 0; local < per_node; ++local) parts.insert(owner * per_node + local);
    }
    const size_t node = generation.ranks[static_cast<size_t>(index * per_node)]->node;
    std::vector<Holding>& memory = memory_[node];
    if (memory.size() >= 2) memory.erase(memory.begin());
    memory.push_back({.step = generation.step,
                      .generation = roster.generation,
                      .parts = roster.world_size,
                      .held = {parts.begin(), parts.end()}});
  }
  if (generation.step % options_.persistent_interval == 0) {
    std::vector<int64_t> parts(static_cast<size_t>(roster.world_size));
    std::iota(parts.begin(), parts.end(), 0);
    if (persistent_.size() >= 2) persistent_.erase(persistent_.begin());
    persistent_.push_back({.step = generation.step,
                           .generation = roster.generation,
                           .tier = Tier::persistent,
                           .parts = roster.world_size,
                           .held = std::move(parts)});
  }
}

void FakeRun::let_peers_notice(Generation& generation, double now) {
  if (!generation.peers_notice) return;
  const auto dead = std::find_if(generation.ranks.begin(), generation.ranks.end(), [](const Process* process) {
    return process != nullptr && !process->is_alive() && process->ending.kind != EndingKind::done &&
           process->ending.kind != EndingKind::stopped && process->ending.kind != EndingKind::comm;
  });
  if (dead == generation.ranks.end() || generation.stage == Stage::boot) return;
  for (Process* const process : generation.ranks) {
    if (process == nullptr || !is_there(*process) || process->ends_at >= 0) continue;
    process->ending = {.kind = EndingKind::comm, .message = "connection reset", .ranks = {(*dead)->rank}};
    process->ends_at = now + uniform(0.2, 2.0);
  }
}

void FakeRun::finish_ends(Generation& generation, double now) {
  for (Process* const process : generation.ranks) {
    if (process == nullptr || !is_there(*process) || process->ends_at < 0 || now < process->ends_at) continue;
    const EndingKind kind = process->ending.kind;
    const bool is_good = kind == EndingKind::done || kind == EndingKind::stopped;
    process->end = ProcessEnd{.exit_code = kind == EndingKind::done ? 0 : kind == EndingKind::stopped ? 75 : 1};
    if (is_good) continue;
    generation.has_trouble = true;
    troubled_.insert(process->node);
  }
}

void FakeRun::advance(double now) {
  if (generations_.empty()) return;
  // Earlier ones have been killed, or cannot go on alone: the store of the newest refuses them.
  for (auto entry = std::prev(generations_.end(), std::min<int64_t>(2, std::ssize(generations_)));
       entry != generations_.end(); ++entry) {
    advance(entry->second, now);
  }
}

void FakeRun::advance(Generation& generation, double now) {
  let_peers_notice(generation, now);
  finish_ends(generation, now);
  const bool all_there = all(generation, is_there);
  const bool all_alive_or_done = all(generation, [](const Process& process) { return process.ends_at < 0; });
  if (!all_there || !all_alive_or_done) return;
  switch (generation.stage) {
    case Stage::boot:
      if (all(generation, is_there) && std::all_of(generation.ranks.begin(), generation.ranks.end(),
                                                   [&](const Process* p) { return now - p->began >= kBoot; })) {
        begin_stage(generation, Stage::rendezvous, now);
      }
      return;
    case Stage::rendezvous:
      if (generation.store != nullptr && is_there(*generation.store)) begin_stage(generation, Stage::load, now);
      return;
    case Stage::load:
      generation.moved = now;
      if (now - generation.stage_began >= kLoad) load(generation, now);
      return;
    case Stage::steps:
      break;
    case Stage::over:
      return;
  }
  generation.moved = now;
  if (generation.step >= options_.steps) {
    end_all(generation, EndingKind::done, now);
    if (done_at_ < 0) done_at_ = now;
    return begin_stage(generation, Stage::over, now);
  }
  if (now - generation.step_began < options_.step_seconds) return;
  if (options_.crashes_in_first_step) return kill(*generation.ranks.front(), 11, now);
  keep_step(generation);
  steps_done_ = std::max(steps_done_, generation.step + 1);
  ++generation.step;
  generation.step_began = now;
  if (generation.was_asked_to_stop) {
    end_all(generation, EndingKind::stopped, now);
    begin_stage(generation, Stage::over, now);
  }
}

PageReport FakeRun::page_of(const Process& process, double now) {
  const Generation& generation = generations_.at(process.generation);
  PageReport page{.section = kSectionOf[static_cast<int>(generation.stage)], .ending = process.ending};
  // What a rank says at its end is in its page when it has ended.
  if (!process.end) page.ending = {};
  page.section_seconds = now - generation.stage_began;
  page.longest = generation.longest;
  page.step = generation.stage >= Stage::steps ? generation.step : -1;
  page.beat_seconds = now - generation.moved;
  GroupCalls calls{
      .group = "world", .operation = "all_reduce", .entered = generation.step, .finished = generation.step};
  if (process.hangs_since >= 0) {
    page.beat_seconds = now - process.hangs_since;
  } else if (page.beat_seconds > 0.5) {
    calls.entered += 1;  // waits for the others
  }
  page.calls.push_back(std::move(calls));
  return page;
}

}  // namespace megalith::resilience::testing
