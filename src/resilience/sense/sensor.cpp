#include "resilience/sense/sensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace megalith::resilience {

namespace {
constexpr double kRedial = 0.7;      // of what a silent monitor has: one whose session broke dials again at once
constexpr double kInspection = 3.0;  // seconds for nodes to say what /proc has
constexpr double kStoreGrace = 5.0;  // a store that ended well may have outlived its ranks; their reports come
constexpr int64_t kStoppedEarly = 75;
constexpr int64_t kUserError = 2;

enum class HowItEnded { done, stopped, failed };

HowItEnded how_it_ended(const RankReport& rank) {
  const EndingKind kind = rank.page ? rank.page->ending.kind : EndingKind::none;
  const std::optional<int64_t> code = rank.end ? rank.end->exit_code : std::nullopt;
  const bool unknown = rank.end && !code && rank.end->signal == 0;
  if (kind == EndingKind::done && (unknown || code == 0)) return HowItEnded::done;
  if (kind == EndingKind::stopped && (unknown || code == kStoppedEarly)) return HowItEnded::stopped;
  return HowItEnded::failed;
}

Symptom symptom_of(const RankReport& rank) {
  const EndingKind kind = rank.page ? rank.page->ending.kind : EndingKind::none;
  const bool loads = rank.page && rank.page->section == Section::load;
  if (loads && (kind == EndingKind::io || kind == EndingKind::data)) return Symptom::load_failed;
  if (kind == EndingKind::comm) return Symptom::call_failed;
  if (kind == EndingKind::non_finite) return Symptom::not_finite;
  if (kind == EndingKind::user || kind == EndingKind::data || (rank.end && rank.end->exit_code == kUserError)) {
    return Symptom::user_error;
  }
  return Symptom::rank_ended;
}

std::string words_of(const RankReport& rank) {
  std::string text;
  if (!rank.end) {
    text = "is not there any longer";
  } else if (rank.end->signal != 0) {
    text = fmt::format("ended by signal {}", rank.end->signal);
  } else if (rank.end->exit_code) {
    text = fmt::format("ended with code {}", *rank.end->exit_code);
  } else {
    text = "ended, nobody knows how";
  }
  if (!rank.page) return text + (rank.page_problem.empty() ? "" : fmt::format(" ({})", rank.page_problem));
  text += fmt::format(" in section {}, step {}", name_of(rank.page->section), rank.page->step);
  if (!rank.page->ending.message.empty()) text += ": " + rank.page->ending.message;
  return text;
}
}  // namespace

Sensor::Sensor(const RunState& state, const SensorGuards& guards)
    : state_(state), guards_(guards), deadlines_(state.settings) {
  deadlines_.take(state.learned);
}

bool Sensor::accepts_faults() const {
  return !state_.is_settling() && (state_.has_ranks() || state_.phase == RunPhase::gather) && state_.roster;
}

bool Sensor::is_heard(const std::string& node) const {
  const auto found = state_.nodes.find(node);
  return found != state_.nodes.end() && found->second.is_heard;
}

const RosterNode* Sensor::member(const std::string& node) const {
  const auto found = members_.find(node);
  return found == members_.end() ? nullptr : found->second;
}

void Sensor::watch_generation() {
  if (generation_ == state_.generation()) return;
  generation_ = state_.generation();
  ranks_.assign(state_.roster ? static_cast<size_t>(state_.roster->world_size) : 0, {});
  members_.clear();
  if (state_.roster) {
    for (const RosterNode& node : state_.roster->nodes) members_.emplace(node.node, &node);
  }
  store_ = {};
  store_told_ = false;
  store_ended_ = inspected_ = done_at_ = -1.0;
  done_step_ = -1;
  call_failed_told_.clear();
  named_gone_.clear();
  gone_told_.clear();
  inspections_.clear();
  hangs_due_ = kNever;
}

Sensor::Verdict Sensor::take(const Report& report, double now, std::vector<Fact>& facts) {
  const std::string& name = report.header.sender;
  Node& node = nodes_[name];
  const bool is_known = node.session != 0;
  if (is_known && report.boot_id != node.boot_id) {
    if (now - node.heard < state_.settings.heartbeat_timeout) return Verdict::stranger;
  } else if (is_known && report.session < node.session) {
    return now - node.heard < state_.settings.heartbeat_timeout ? Verdict::stale : Verdict::stranger;
  }
  if (report.session != node.session || report.boot_id != node.boot_id) node.sequence = 0;
  if (report.header.sequence <= node.sequence) return Verdict::stale;
  node = {.session = report.session, .boot_id = report.boot_id, .sequence = report.header.sequence, .heard = now};
  const auto known = state_.nodes.find(name);
  if (known == state_.nodes.end() || !known->second.is_heard || known->second.boot_id != report.boot_id ||
      known->second.address != report.address) {
    facts.push_back(
        {.kind = FactKind::heard, .time = now, .node = name, .text = report.address, .digest = report.boot_id});
  }
  if (report.stop_requested && !state_.stop_requested) {
    facts.push_back({.kind = FactKind::stop_requested,
                     .time = now,
                     .node = name,
                     .seconds = report.stop_grace,
                     .evidence = fmt::format("a signal to the monitor of node {}", name)});
  }
  watch_generation();
  take_ranks(report);
  if (const RosterNode* const its_place = member(name)) {
    const auto per_node = static_cast<size_t>(state_.roster->ranks_per_node);
    tell_ends(static_cast<size_t>(its_place->index) * per_node, per_node, now, facts);
  }
  tell_store(now, facts);
  return Verdict::taken;
}

void Sensor::take_ranks(const Report& report) {
  const RosterNode* const node = member(report.header.sender);
  if (node == nullptr) return;
  const int64_t per_node = state_.roster->ranks_per_node;
  const int64_t first = node->index * per_node;
  std::vector<bool> seen(static_cast<size_t>(per_node));
  bool saw_store = false;
  bool was_inspected = false;
  for (const RankReport& rank : report.ranks) {
    if (rank.generation != generation_) continue;
    Rank* entry = nullptr;
    if (rank.is_store() && state_.roster->store_node == node->node) {
      entry = &store_;
      saw_store = true;
    } else if (rank.rank >= first && rank.rank < first + per_node) {
      entry = &ranks_[static_cast<size_t>(rank.rank)];
      seen[static_cast<size_t>(rank.rank - first)] = true;
    } else {
      continue;
    }
    learn(rank);
    was_inspected = was_inspected || rank.process.has_value();
    std::optional<ProcessReport> process = rank.process ? rank.process : std::move(entry->report.process);
    entry->report = rank;
    entry->report.process = std::move(process);
    entry->is_known = true;
    entry->is_missing = false;
  }
  if (was_inspected) inspections_.insert(node->node);
  if (inspected_ >= 0 && inspections_.size() >= inspected_nodes_) hangs_due_ = inspected_;
  // Once every node has started its ranks, a node that has lost sight of one has lost the rank.
  if (state_.phase < RunPhase::join || state_.phase > RunPhase::running) return;
  for (int64_t index = 0; index < per_node; ++index) {
    if (!seen[static_cast<size_t>(index)]) ranks_[static_cast<size_t>(first + index)].is_missing = true;
  }
  if (!saw_store && state_.roster->store_node == node->node) store_.is_missing = true;
}

// By the rank's own count: most sections of a small model begin and end between two reports. A start that loads nothing
// says nothing of how long loading takes.
void Sensor::learn(const RankReport& rank) {
  if (!rank.page) return;
  for (int i = 0; i < kSections; ++i) {
    const auto section = static_cast<Section>(i);
    if (section == Section::step || section == Section::wait) continue;  // tell_progress
    if (section == Section::load && state_.roster->from_step < 0) continue;
    deadlines_.saw_section(section, rank.page->longest[static_cast<size_t>(i)]);
  }
}

Fact Sensor::fault(Symptom symptom, double now, std::string evidence) const {
  return {.kind = FactKind::fault,
          .time = now,
          .generation = generation_,
          .step = done_step_,
          .number = done_step_ + 1,
          .symptom = symptom,
          .evidence = std::move(evidence)};
}

Fact Sensor::fault_of_end(int64_t number, const Rank& rank, double now) const {
  const std::string& node = state_.roster->node_of(number).node;
  Fact fact =
      fault(symptom_of(rank.report), now, fmt::format("rank {} on node {} {}", number, node, words_of(rank.report)));
  if (rank.report.page) fact.text = rank.report.page->ending.message;
  switch (fact.symptom) {
    case Symptom::call_failed:
      fact.ranks = rank.report.page->ending.ranks;
      return fact;
    case Symptom::load_failed:
      fact.step = state_.roster->from_step;
      break;
    case Symptom::not_finite:
      fact.step = rank.report.page->step;
      break;
    default:
      break;
  }
  fact.node = node;
  fact.ranks = {number};
  return fact;
}

void Sensor::tell_ends(size_t first, size_t count, double now, std::vector<Fact>& facts) {
  if (!accepts_faults()) return;
  for (size_t index = first; index < first + count; ++index) {
    Rank& rank = ranks_[index];
    if (rank.is_told || (!rank.report.end && !rank.is_missing)) continue;
    if (rank.report.end && how_it_ended(rank.report) != HowItEnded::failed) continue;
    rank.is_told = true;
    const auto number = static_cast<int64_t>(index);
    Fact fact = fault_of_end(number, rank, now);
    if (fact.symptom == Symptom::call_failed) {
      for (const int64_t named : fact.ranks) {
        if (named >= 0 && named < state_.roster->world_size) named_gone_.insert(state_.roster->node_of(named).node);
      }
      if (!call_failed_told_.insert(state_.roster->node_of(number).node).second) continue;
    }
    facts.push_back(std::move(fact));
  }
}

void Sensor::tell_store(double now, std::vector<Fact>& facts) {
  if (!accepts_faults() || store_told_ || (!store_.report.end && !store_.is_missing)) return;
  if (store_ended_ < 0) store_ended_ = now;
  const bool ended_well = store_.report.end && store_.report.end->exit_code == 0;
  const bool somebody_needs_it =
      std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.report.end; });
  if (!somebody_needs_it || (ended_well && now - store_ended_ < kStoreGrace)) return;
  store_told_ = true;
  Fact fact = fault(Symptom::store_ended, now,
                    fmt::format("the store on node {} {}", state_.roster->store_node, words_of(store_.report)));
  fact.node = state_.roster->store_node;
  facts.push_back(std::move(fact));
}

void Sensor::lost_session(const std::string& node, double now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  found->second.broken = now;
  silence_due_ = std::min(silence_due_, now + kRedial * state_.settings.heartbeat_timeout);
}

void Sensor::look(double now, std::vector<Fact>& facts) {
  watch_generation();
  hangs_due_ = kNever;
  tell_silence(now, facts);
  if (!accepts_faults()) return;
  tell_ends(0, ranks_.size(), now, facts);
  tell_store(now, facts);
  if (!state_.has_ranks()) return;
  tell_progress(now, facts);
  tell_lost_nodes(now, facts);
  tell_hangs(now, facts);
  tell_learned(now, facts);
}

void Sensor::tell_silence(double now, std::vector<Fact>& facts) {
  silence_due_ = kNever;
  const double timeout = state_.settings.heartbeat_timeout;
  for (const auto& [name, node] : state_.nodes) {
    if (!node.is_heard) continue;
    const Node& its = nodes_[name];
    const double heard = std::max(its.heard, node.since);
    const double due = std::min(heard + timeout, its.broken + kRedial * timeout);
    silence_due_ = std::min(silence_due_, std::max(due, now));  // the next look tells what follows from it
    if (now < due) continue;
    facts.push_back({.kind = FactKind::silent,
                     .time = now,
                     .node = name,
                     .evidence = fmt::format("node {} has been silent for {:.1f} s", name, now - heard)});
  }
}

void Sensor::tell_progress(double now, std::vector<Fact>& facts) {
  constexpr int64_t kEndless = INT64_MAX;
  int64_t step = kEndless;
  Section section = Section::end;
  int64_t done = 0;
  int64_t stopped = 0;
  bool beats_outside_steps = false;
  for (const Rank& rank : ranks_) {
    if (!rank.is_known || (!rank.report.page && !rank.report.end)) return;
    if (rank.report.end) {
      const HowItEnded how = how_it_ended(rank.report);
      if (how == HowItEnded::failed) return;
      (how == HowItEnded::done ? done : stopped) += 1;
      continue;
    }
    section = std::min(section, rank.report.page->section);
    step = std::min(step, rank.report.page->step);
    const Section at = rank.report.page->section;
    beats_outside_steps = beats_outside_steps || (at != Section::step && at != Section::wait);
  }
  const auto told = [&](FactKind kind, int64_t about) {
    facts.push_back({.kind = kind, .time = now, .generation = generation_, .step = about});
  };
  if (done + stopped == static_cast<int64_t>(ranks_.size())) {
    return told(stopped == 0 ? FactKind::completed : FactKind::stopped, -1);
  }
  if (state_.phase == RunPhase::join && section > Section::rendezvous) told(FactKind::joined, -1);
  if (state_.phase >= RunPhase::join && state_.phase < RunPhase::redo && section >= Section::step) {
    told(FactKind::loaded, -1);
  }
  if (done_at_ < 0 || beats_outside_steps) done_at_ = now;
  if (step == kEndless || step - 1 <= done_step_) return;
  const int64_t steps = step - 1 - done_step_;
  if (done_step_ >= 0) deadlines_.saw_steps(steps, (now - done_at_) / static_cast<double>(steps));
  done_step_ = step - 1;
  done_at_ = now;
  if (done_step_ > state_.best_step && state_.phase < RunPhase::running) told(FactKind::progress, done_step_);
}

// As of the last report: what it did since then is not known.
double Sensor::quiet(const Rank& rank, double now) const {
  return rank.report.page ? rank.report.page->beat_seconds : now - state_.phase_began;
}

bool Sensor::is_overdue(const Rank& rank, double now) const {
  const Section section = rank.report.page ? rank.report.page->section : Section::boot;
  return is_alive(rank) && quiet(rank, now) >= deadlines_.without_beat(section);
}

// When it will be overdue if it does not beat, also where its node says no more.
double Sensor::deadline(const Rank& rank, const std::string& node) const {
  if (!is_alive(rank)) return kNever;
  const Section section = rank.report.page ? rank.report.page->section : Section::boot;
  const double since = rank.report.page ? nodes_.at(node).heard - rank.report.page->beat_seconds : state_.phase_began;
  return since + deadlines_.without_beat(section);
}

std::vector<RankView> Sensor::views(double now) const {
  std::vector<RankView> views;
  for (size_t index = 0; index < ranks_.size(); ++index) {
    const Rank& rank = ranks_[index];
    if (!is_alive(rank)) continue;
    views.push_back({.rank = static_cast<int64_t>(index),
                     .page = rank.report.page ? &*rank.report.page : nullptr,
                     .process = rank.report.process ? &*rank.report.process : nullptr,
                     .is_overdue = is_overdue(rank, now)});
  }
  return views;
}

void Sensor::tell_hangs(double now, std::vector<Fact>& facts) {
  bool all_heard = true;
  bool somebody_is_overdue = false;
  size_t heard = 0;
  hangs_due_ = kNever;
  for (const RosterNode& node : state_.roster->nodes) {
    if (!is_heard(node.node)) {
      all_heard = false;
      continue;
    }
    ++heard;
    for (int64_t local = 0; local < state_.roster->ranks_per_node; ++local) {
      const Rank& rank = ranks_[static_cast<size_t>(node.index * state_.roster->ranks_per_node + local)];
      somebody_is_overdue = somebody_is_overdue || is_overdue(rank, now);
      hangs_due_ = std::min(hangs_due_, deadline(rank, node.node));
    }
  }
  if (now < hangs_due_ && !somebody_is_overdue) {
    inspected_ = -1.0;
    if (all_heard && state_.phase >= RunPhase::redo && done_at_ >= 0 && now - done_at_ >= deadlines_.without_step()) {
      done_at_ = now;
      facts.push_back(fault(Symptom::livelock, now,
                            fmt::format("ranks beat, and no step was done for {:.0f} s", deadlines_.without_step())));
    }
    return;
  }
  hangs_due_ = kNever;  // the answers to what follows say when
  if (inspected_ < 0) {
    inspected_ = now;
    inspected_nodes_ = heard;
    inspections_.clear();
    facts.push_back({.kind = FactKind::overdue,
                     .time = now,
                     .generation = generation_,
                     .evidence = "ranks have not beaten within their deadlines"});
    return;
  }
  if (inspections_.size() < inspected_nodes_ && now - inspected_ < kInspection) return;
  inspected_ = -1.0;
  if (!somebody_is_overdue) return;  // by the newest reports, which those that were asked sent
  const Suspicion suspicion = find_suspects(views(now));
  Fact fact = suspicion.ranks.empty() ? fault(Symptom::all_wait, now, "all ranks wait, and none can be named")
                                      : fault(Symptom::rank_stuck, now, suspicion.evidence);
  fact.ranks = suspicion.ranks;
  facts.push_back(std::move(fact));
}

// No rank that is seen has beaten for longer than it does while all is well, or it has ended.
bool Sensor::stands_still(double now) const {
  bool sees_somebody = false;
  for (const RosterNode& node : state_.roster->nodes) {
    if (!is_heard(node.node)) continue;
    for (int64_t local = 0; local < state_.roster->ranks_per_node; ++local) {
      const Rank& rank = ranks_[static_cast<size_t>(node.index * state_.roster->ranks_per_node + local)];
      sees_somebody = true;
      if (!is_alive(rank)) continue;
      const Section section = rank.report.page ? rank.report.page->section : Section::boot;
      const bool steps = section == Section::step || section == Section::wait;
      if (quiet(rank, now) < (steps ? deadlines_.between_beats() : deadlines_.without_beat(section))) return false;
    }
  }
  return sees_somebody;
}

// A monitor's silence is a hint. The node is gone if the others say so, or wait, or if nothing trains yet.
void Sensor::tell_lost_nodes(double now, std::vector<Fact>& facts) {
  for (const RosterNode& node : state_.roster->nodes) {
    const auto found = state_.nodes.find(node.node);
    const bool is_silent = found != state_.nodes.end() && !found->second.is_heard;
    if (!is_silent || gone_told_.contains(node.node)) continue;
    const char* proof = nullptr;
    if (named_gone_.contains(node.node)) proof = "calls to its ranks failed";
    if (proof == nullptr && state_.phase < RunPhase::redo) proof = "no rank trains yet";
    if (proof == nullptr && (!guards_.needs_proof || stands_still(now))) proof = "the other ranks stand still";
    if (proof == nullptr) continue;
    gone_told_.insert(node.node);
    // A supervisor that has never heard it knows since when an earlier one has not.
    const double heard = nodes_[node.node].session != 0 ? nodes_[node.node].heard : found->second.since;
    Fact fact = fault(Symptom::node_gone, now,
                      fmt::format("node {} has been silent for {:.1f} s, and {}", node.node, now - heard, proof));
    fact.node = node.node;
    facts.push_back(std::move(fact));
  }
}

void Sensor::tell_learned(double now, std::vector<Fact>& facts) {
  if (state_.phase != RunPhase::running) return;
  const double step = deadlines_.without_beat(Section::step);
  const double save = deadlines_.without_beat(Section::save);
  const auto differs = [](double a, double b) { return std::abs(a - b) > 0.3 * std::max(a, b); };
  if (!differs(step, told_step_deadline_) && !differs(save, told_save_deadline_)) return;
  told_step_deadline_ = step;
  told_save_deadline_ = save;
  facts.push_back({.kind = FactKind::learned, .time = now, .generation = generation_, .text = deadlines_.to_text()});
}

}  // namespace megalith::resilience
