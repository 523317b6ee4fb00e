#include "resilience/simulation/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <queue>

#include "core/error.h"
#include "resilience/names.h"
#include "resilience/simulation/fake_directory.h"
#include "resilience/simulation/fake_run.h"

namespace megalith::resilience::testing {

namespace {
constexpr double kTick = 0.25;
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kRedial = 0.7;   // of heartbeat_timeout, as promised
constexpr double kBound = 900.0;  // from the last fault to the end, beside the steps themselves
constexpr const char* kRun = "run-1";
constexpr std::array<const char*, 8> kInvariantWords = {"none",
                                                        "one roster per generation",
                                                        "no order of an old term takes effect",
                                                        "never two recoveries",
                                                        "no restart without proof while beats move",
                                                        "no node out without evidence that names it",
                                                        "an end in bounded time",
                                                        "folding the journal gives the state"};

class Simulation;

// A machine, and the monitor on it.
class FakeNode final : public NodeHost {
 public:
  FakeNode(Simulation& simulation, size_t index) : simulation_(simulation), index_(index) {}

  int64_t newest_term() const override;
  std::optional<Roster> newest_roster() const override;
  std::vector<RankReport> processes(bool with_proc) override;
  void start_rank(const Roster& roster, int64_t rank, const Place& store, const std::vector<Holder>& holders) override;
  Place serve_store(const Roster& roster) override;
  void kill_up_to(int64_t generation) override;
  bool is_clear_of(int64_t generation) override;
  void ask_to_stop(int64_t generation) override;
  std::vector<Holding> holdings() override;
  Place holder_place() override { return {.address = address(), .port = 7000, .secret = "held"}; }
  CheckOutcome check(std::string& evidence) override;

  const std::string& name() const { return name_; }
  std::string address() const { return "10.0.0." + std::to_string(index_); }

  std::string name_;
  std::unique_ptr<MonitorLogic> logic;  // null: the monitor is dead
  double monitor_returns = -1.0;        // -1: it does not
  bool is_up = true;
  double returns_at = -1.0;  // the machine, empty
  int64_t boot = 1;
  int64_t session = 0;
  double cut_since = -1.0;  // from the supervisors
  double cut_until = -1.0;
  double reported = -1e9;
  bool fails_checks = false;
  bool crashes_in_next_effect = false;
  bool has_trouble = false;  // that a supervisor may hold against it

 private:
  void effect();

  Simulation& simulation_;
  size_t index_;
};

// A supervisor's process, with its ends of the wire.
struct FakeSupervisor final : SupervisorTransport {
  // What has reached it of a node: the newest report, and the end of the session that brought it.
  struct Heard {
    std::pair<int64_t, int64_t> newest;
    double at;
    double broken;
    int64_t broken_session = 0;
  };

  FakeSupervisor(Simulation& its_simulation, double now) : simulation(its_simulation), born(now) {}
  bool send(const std::string& node, const Order& order) override;
  std::optional<Report> receive() override;
  std::optional<std::string> next_broken() override;
  Heard& heard(const FakeNode& node) {
    return heard_.try_emplace(&node, Heard{.at = born, .broken = kNever}).first->second;
  }

  Simulation& simulation;
  double born;
  std::unique_ptr<Supervisor> logic;
  std::deque<std::shared_ptr<const Report>> inbox;
  std::deque<std::string> broken;
  double frozen_until = -1.0;
  RunPhase phase = RunPhase::gather;
  int64_t generation = 0;
  int64_t term = 0;
  std::map<std::string, std::string> out;

 private:
  std::map<const FakeNode*, Heard> heard_;
};

struct Message {
  double due;
  uint64_t number;
  std::shared_ptr<FakeSupervisor> supervisor;
  size_t node;
  std::shared_ptr<const Order> order;
  std::shared_ptr<const Report> report;
  bool operator<(const Message& other) const { return std::tie(due, number) > std::tie(other.due, other.number); }
};

struct Violation {
  Invariant invariant;
  std::string how;
};

struct Fault {
  double at;
  std::function<void()> strike;
  bool operator<(const Fault& other) const { return at < other.at; }
};

class Simulation {
 public:
  Simulation(uint64_t seed, const SimulationOptions& options);
  SimulationResult run();

  double uniform(double low, double high) { return std::uniform_real_distribution<>(low, high)(random_); }
  bool chance(double share) { return uniform(0, 1) < share; }
  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  void say(const std::string& text) {
    if (options_.tells_story) story_ += fmt::format("{:8.2f} {}\n", now_, text);
  }
  void violated(Invariant invariant, const std::string& how) {
    if (!violation_) violation_ = Violation{invariant, how};
  }
  size_t index_of(const std::string& name) const { return std::stoul(name.substr(4)); }

  void send(FakeSupervisor& from, const std::string& node, const Order& order);

  double now_ = 0.0;
  FakeDirectory directory_;
  std::unique_ptr<FakeRun> run_;
  std::vector<std::unique_ptr<FakeNode>> nodes_;
  std::optional<int64_t> order_term_;  // of the order that a monitor carries out right now
  std::map<int64_t, std::string> started_rosters_;
  double directory_returns_ = -1.0;
  std::string roster_text_;  // the last that was read
  std::optional<Roster> roster_;

 private:
  void plan_faults();
  void plan(double at, std::function<void()> strike) { faults_.push_back({at, std::move(strike)}); }
  void start_monitor(FakeNode& node);
  void start_supervisor();
  void crash_supervisor(const std::string& why);
  void crash_monitor(FakeNode& node, double for_seconds);
  void break_sessions(const FakeNode& node);
  void deliver();
  void poll_monitors();
  void poll_supervisors();
  void poll(const std::shared_ptr<FakeSupervisor>& supervisor);
  void watch(FakeSupervisor& supervisor);
  void check_restart(const FakeSupervisor& supervisor);
  void check_out(FakeSupervisor& supervisor);
  void check_fold(const FakeSupervisor& supervisor);
  void put(Message message);
  Moment moment() const { return {.wall = 1e9 + now_, .monotonic = 100.0 + now_}; }
  Process* some_rank();

  SimulationOptions options_;
  std::mt19937_64 random_;
  Settings settings_;
  double lost_share_ = 0.0;
  double doubled_share_ = 0.0;
  double late_share_ = 0.0;
  double crash_share_ = 0.0;  // of writes to the run directory
  double faults_end_ = 0.0;
  std::vector<Fault> faults_;
  std::priority_queue<Message> wire_;
  uint64_t messages_ = 0;
  std::vector<std::shared_ptr<FakeSupervisor>> supervisors_;  // the newest last
  double supervisor_returns_ = 0.0;
  std::optional<int64_t> exit_code_;
  std::optional<Violation> violation_;
  int64_t injected_ = 0;
  std::string story_;
};

// --- A node ---

int64_t FakeNode::newest_term() const {
  if (simulation_.directory_.is_gone) throw Error(ErrorKind::io, "the run directory is not there");
  return simulation_.directory_.newest_term();
}

std::optional<Roster> FakeNode::newest_roster() const {
  const std::optional<std::string> text =
      simulation_.directory_.read(roster_file_name(newest_generation(simulation_.directory_)));
  if (!text) return std::nullopt;
  if (*text != simulation_.roster_text_) {  // a thousand nodes read the same
    simulation_.roster_ = read_newest_roster(simulation_.directory_, kRun);
    simulation_.roster_text_ = *text;
  }
  return simulation_.roster_;
}

// What an order does is done under its term, while a newer one may have been taken.
void FakeNode::effect() {
  if (simulation_.order_term_ && *simulation_.order_term_ < simulation_.directory_.newest_term()) {
    simulation_.violated(Invariant::no_old_term_takes_effect,
                         fmt::format("{} carried out an order of term {} in term {}", name_, *simulation_.order_term_,
                                     simulation_.directory_.newest_term()));
  }
  if (crashes_in_next_effect) {
    crashes_in_next_effect = false;
    throw Crash{};
  }
}

std::vector<RankReport> FakeNode::processes(bool with_proc) {
  std::vector<RankReport> reports;
  const std::vector<Process*>& processes = simulation_.run_->processes_on(index_);
  int64_t newest = 0;
  for (const Process* process : processes) newest = std::max(newest, process->generation);
  for (const Process* process : processes) {
    if (process->generation != newest && !process->is_alive()) continue;
    RankReport report{
        .rank = process->rank, .generation = process->generation, .pid = process->pid, .end = process->end};
    if (!process->is_store()) report.page = simulation_.run_->page_of(*process, simulation_.now_);
    if (with_proc)
      report.process = ProcessReport{.state = process->hangs_since >= 0 && process->pid % 2 == 0 ? 'T' : 'S'};
    reports.push_back(std::move(report));
  }
  return reports;
}

void FakeNode::start_rank(const Roster& roster, int64_t rank, const Place& store, const std::vector<Holder>&) {
  effect();
  for (const Process* process : simulation_.run_->processes_on(index_)) {
    if (process->generation == roster.generation && process->rank == rank) return;
  }
  const auto [known, is_first] = simulation_.started_rosters_.emplace(roster.generation, simulation_.roster_text_);
  if (known->second != simulation_.roster_text_) {
    simulation_.violated(Invariant::one_roster_per_generation,
                         fmt::format("generation {} was started with two rosters", roster.generation));
  }
  for (const RosterNode& member : roster.nodes) {
    for (const Process* process : simulation_.run_->processes_on(simulation_.index_of(member.node))) {
      if (process->generation == roster.generation || !process->is_alive() || process->is_unkillable) continue;
      simulation_.violated(Invariant::one_recovery_at_a_time,
                           fmt::format("rank {} of generation {} started while {} still ran rank {} of generation {}",
                                       rank, roster.generation, member.node, process->rank, process->generation));
    }
  }
  if (store.port == 0) throw Error(ErrorKind::internal, "an order to start that names no store");
  simulation_.run_->start(index_, roster, rank, simulation_.now_);
}

Place FakeNode::serve_store(const Roster& roster) {
  effect();
  const Place place{.address = address(), .port = 5000 + roster.generation, .secret = "secret"};
  for (const Process* process : simulation_.run_->processes_on(index_)) {
    if (process->generation == roster.generation && process->is_store()) {
      if (!process->is_alive()) throw Error(ErrorKind::io, "the store of this generation has ended");
      return place;
    }
  }
  simulation_.run_->start(index_, roster, RankReport::kStore, simulation_.now_);
  return place;
}

void FakeNode::kill_up_to(int64_t generation) {
  effect();
  for (Process* const process : simulation_.run_->processes_on(index_)) {
    if (process->generation <= generation) simulation_.run_->kill(*process, 9, simulation_.now_);
  }
}

bool FakeNode::is_clear_of(int64_t generation) {
  const std::vector<Process*>& processes = simulation_.run_->processes_on(index_);
  return std::none_of(processes.begin(), processes.end(),
                      [&](const Process* p) { return p->generation <= generation && p->is_alive(); });
}

void FakeNode::ask_to_stop(int64_t generation) {
  effect();
  if (Generation* const asked = simulation_.run_->find(generation)) asked->was_asked_to_stop = true;
}

std::vector<Holding> FakeNode::holdings() {
  if (simulation_.directory_.is_gone) throw Error(ErrorKind::io, "the run directory is not there");
  return simulation_.run_->holdings_on(index_);
}

CheckOutcome FakeNode::check(std::string& evidence) {
  effect();
  if (!fails_checks) return CheckOutcome::ok;
  evidence = "the disk does not write";
  return CheckOutcome::failed;
}

// --- The wire ---

bool FakeSupervisor::send(const std::string& node, const Order& order) {
  simulation.send(*this, node, order);
  return true;
}

std::optional<Report> FakeSupervisor::receive() {
  if (inbox.empty()) return std::nullopt;
  std::optional<Report> report = *inbox.front();
  inbox.pop_front();
  return report;
}

std::optional<std::string> FakeSupervisor::next_broken() {
  if (broken.empty()) return std::nullopt;
  std::string node = std::move(broken.front());
  broken.pop_front();
  return node;
}

// The kernel of a machine that lives tells the other end when a process dies; a cut tells nobody.
void Simulation::break_sessions(const FakeNode& node) {
  if (node.cut_until > now_) return;
  for (const auto& supervisor : supervisors_) {
    supervisor->broken.push_back(node.name());
    FakeSupervisor::Heard& heard = supervisor->heard(node);
    heard.broken = now_;
    heard.broken_session = node.session;
  }
}

void Simulation::put(Message message) {
  const FakeNode& node = *nodes_[message.node];
  if (node.cut_until > now_ || chance(lost_share_)) return;
  const auto delay = [&] { return chance(late_share_) ? uniform(0.5, 4.0) : uniform(0.001, 0.05); };
  if (chance(doubled_share_)) {
    Message again = message;
    again.due = now_ + delay();
    again.number = ++messages_;
    wire_.push(std::move(again));
  }
  message.due = now_ + delay();
  message.number = ++messages_;
  wire_.push(std::move(message));
}

void Simulation::send(FakeSupervisor& from, const std::string& node, const Order& order) {
  const auto self =
      std::find_if(supervisors_.begin(), supervisors_.end(), [&](const auto& s) { return s.get() == &from; });
  if (self == supervisors_.end()) return;
  if (order.kind != OrderKind::greet)
    say(fmt::format("term {} orders {}: {} #{}", order.header.term, node, name_of(order.kind), order.header.sequence));
  put({.supervisor = *self, .node = index_of(node), .order = std::make_shared<const Order>(order)});
}

void Simulation::deliver() {
  while (!wire_.empty() && wire_.top().due <= now_) {
    const Message message = std::move(const_cast<Message&>(wire_.top()));  // popped at once
    wire_.pop();
    FakeNode& node = *nodes_[message.node];
    if (node.cut_until > now_) continue;
    if (message.report) {
      message.supervisor->inbox.push_back(message.report);
      const std::pair number(message.report->session, message.report->header.sequence);
      FakeSupervisor::Heard& heard = message.supervisor->heard(node);
      if (number <= heard.newest) continue;
      if (number.first > heard.broken_session) heard.broken = kNever;
      heard.newest = number;
      heard.at = now_;
      continue;
    }
    if (!node.logic) continue;
    order_term_ = message.order->header.term;
    try {
      node.logic->take(*message.order);
    } catch (const Crash&) {
      crash_monitor(node, uniform(0.3, 2.0));
    }
    order_term_.reset();
  }
}

// --- Processes of the control plane ---

void Simulation::start_monitor(FakeNode& node) {
  node.session = static_cast<int64_t>(now_ * 1000) + 1;
  node.logic = std::make_unique<MonitorLogic>(MonitorIdentity{.run = kRun,
                                                              .node = node.name(),
                                                              .address = node.address(),
                                                              .boot_id = fmt::format("boot-{}", node.boot),
                                                              .session = node.session},
                                              node, options_.monitor_guards);
  node.reported = -1e9;
  node.monitor_returns = -1.0;
}

void Simulation::crash_monitor(FakeNode& node, double for_seconds) {
  say(fmt::format("the monitor of {} dies", node.name()));
  break_sessions(node);
  node.logic.reset();
  node.monitor_returns = now_ + for_seconds;
}

void Simulation::start_supervisor() {
  auto supervisor = std::make_shared<FakeSupervisor>(*this, now_);
  supervisor->logic = std::make_unique<Supervisor>(
      settings_,
      SupervisorIdentity{.boot_id = "machine", .alarm = [this](const std::string& text) { say("alarm: " + text); }},
      directory_, *supervisor, options_.supervisor_guards);
  supervisors_.push_back(std::move(supervisor));
  supervisor_returns_ = -1.0;
}

void Simulation::crash_supervisor(const std::string& why) {
  if (supervisors_.empty()) return;
  say("the supervisor dies: " + why);
  check_fold(*supervisors_.back());
  supervisors_.pop_back();
  supervisor_returns_ = now_ + uniform(0.5, 8.0);
}

void Simulation::poll_monitors() {
  for (const auto& entry : nodes_) {
    FakeNode& node = *entry;
    if (!node.is_up) {
      if (node.returns_at >= 0 && now_ >= node.returns_at) {
        say(fmt::format("{} returns, empty", node.name()));
        node.is_up = true;
        ++node.boot;
        start_monitor(node);
      }
      continue;
    }
    if (!node.logic) {
      if (node.monitor_returns >= 0 && now_ >= node.monitor_returns) start_monitor(node);
      continue;
    }
    if (!node.logic->poll() && now_ - node.reported < 1.0) continue;
    node.reported = now_;
    if (supervisors_.empty()) continue;
    const auto report = std::make_shared<const Report>(node.logic->report());
    for (const auto& supervisor : supervisors_)
      put({.supervisor = supervisor, .node = index_of(node.name()), .report = report});
    if (node.logic->exit_code()) node.logic.reset();
  }
}

void Simulation::poll_supervisors() {
  if (supervisor_returns_ >= 0 && now_ >= supervisor_returns_) start_supervisor();
  const std::vector<std::shared_ptr<FakeSupervisor>> all = supervisors_;
  for (const auto& supervisor : all) {
    if (supervisor->frozen_until <= now_) poll(supervisor);
  }
}

void Simulation::poll(const std::shared_ptr<FakeSupervisor>& supervisor) {
  const bool is_newest = supervisor == supervisors_.back();
  try {
    supervisor->logic->poll(moment());
    if (supervisor->logic->leads()) watch(*supervisor);
    if (chance(0.002)) check_fold(*supervisor);
    if (const std::optional<int64_t> code = supervisor->logic->exit_code(); code && is_newest) {
      check_fold(*supervisor);
      exit_code_ = code;
    }
    return;
  } catch (const Crash&) {
    say("a supervisor dies while it writes");
  } catch (const Error& error) {
    say(fmt::format("a supervisor ends: {}", error.what()));
    if (error.kind() == ErrorKind::data || error.kind() == ErrorKind::internal) {
      violated(Invariant::journal_gives_the_state, error.what());
    }
  }
  std::erase(supervisors_, supervisor);
  if (is_newest || supervisors_.empty()) supervisor_returns_ = now_ + uniform(0.5, 8.0);
}

// --- Invariants ---

void Simulation::watch(FakeSupervisor& supervisor) {
  const RunState& state = supervisor.logic->state();
  if (state.phase != supervisor.phase || state.generation() != supervisor.generation) {
    say(fmt::format("term {}: {} of generation {}{}", state.term, name_of(state.phase), state.generation(),
                    state.phase == RunPhase::gather && !state.incident.faults.empty()
                        ? ": " + state.incident.faults.front().evidence
                        : ""));
    check_restart(supervisor);
    supervisor.phase = state.phase;
    supervisor.generation = state.generation();
  }
  check_out(supervisor);
  if (!directory_.overwritten.empty()) {
    violated(Invariant::one_roster_per_generation, directory_.overwritten.front() + " got a second content");
  }
}

// While ranks train, only something that has really happened ends their generation.
void Simulation::check_restart(const FakeSupervisor& supervisor) {
  const RunState& state = supervisor.logic->state();
  const bool trained = supervisor.phase == RunPhase::redo || supervisor.phase == RunPhase::running;
  if (!trained || state.phase > RunPhase::claim || state.generation() != supervisor.generation || state.stop_requested)
    return;
  const Generation* const generation = run_->find(state.generation());
  if (generation == nullptr || generation->has_trouble || generation->stage == Stage::over) return;
  violated(Invariant::no_restart_without_proof,
           fmt::format("generation {} is ended though nothing was wrong: {}", state.generation(),
                       state.incident.faults.empty() ? state.incident.reason : state.incident.faults.front().evidence));
}

void Simulation::check_out(FakeSupervisor& supervisor) {
  const bool inherits = supervisor.term != supervisor.logic->state().term;
  supervisor.term = supervisor.logic->state().term;
  for (const auto& [name, node] : supervisor.logic->state().nodes) {
    std::string& known = supervisor.out[name];
    if (node.out == known) continue;
    known = node.out;
    if (node.out.empty() || inherits) continue;
    say(fmt::format("{} is out: {}", name, node.out));
    const FakeNode& truth = *nodes_[index_of(name)];
    const FakeSupervisor::Heard& heard = supervisor.heard(truth);
    const bool was_silent = now_ - heard.at >= settings_.heartbeat_timeout - 2 * kTick ||
                            now_ - heard.broken >= kRedial * settings_.heartbeat_timeout - 2 * kTick;
    // Most of the time in which its ranks had to be gone: who is back by then may not have been asked again.
    const double asked = now_ - settings_.stop_timeout;
    const double was_cut = std::min(now_, truth.cut_until) - std::max(asked, truth.cut_since);
    const bool could_not_answer =
        was_cut > 0.8 * settings_.stop_timeout ||
        (now_ < truth.cut_until && now_ - truth.cut_since >= settings_.heartbeat_timeout);  // as an earlier leader saw
    if (truth.has_trouble || was_silent || could_not_answer || run_->had_trouble(index_of(name))) continue;
    violated(Invariant::no_node_out_without_evidence,
             fmt::format("{} is out, and nothing was wrong with it: {}", name, node.out));
  }
}

void Simulation::check_fold(const FakeSupervisor& supervisor) {
  if (!supervisor.logic->leads() || directory_.is_gone) return;
  const RunState& state = supervisor.logic->state();
  if (state.term != directory_.newest_term()) return;
  const Inheritance inheritance = inherit(directory_, kRun, options_.supervisor_guards.controller);
  if (inheritance.state == state) return;
  violated(Invariant::journal_gives_the_state,
           fmt::format("term {}: phase {} of generation {} in memory, {} of {} in the journal", state.term,
                       name_of(state.phase), state.generation(), name_of(inheritance.state.phase),
                       inheritance.state.generation()));
}

// --- Faults ---

Process* Simulation::some_rank() {
  Generation* const newest = run_->newest();
  if (newest == nullptr) return nullptr;
  Process* const process = newest->ranks[static_cast<size_t>(pick(0, std::ssize(newest->ranks) - 1))];
  return process != nullptr && process->is_alive() && process->ends_at < 0 ? process : nullptr;
}

void Simulation::plan_faults() {
  const double end = options_.few_faults ? 25.0 : 60.0;
  const int64_t count = chance(options_.quiet_share) ? 0 : pick(1, options_.few_faults ? 2 : 7);
  const auto some_node = [this] { return nodes_[static_cast<size_t>(pick(0, std::ssize(nodes_) - 1))].get(); };
  const auto trouble = [this](size_t node) { nodes_[node]->has_trouble = true; };
  for (int64_t i = 0; i < count; ++i) {
    const double at = uniform(0, end);
    switch (pick(0, 14)) {
      case 0:
      case 1:
        plan(at, [=, this] {
          if (Process* const process = some_rank()) {
            say(fmt::format("rank {} of generation {} is killed", process->rank, process->generation));
            trouble(process->node);
            run_->kill(*process, 9, now_);
          }
        });
        break;
      case 2:
      case 3:
        plan(at, [=, this] {
          if (Process* const process = some_rank(); process != nullptr && process->hangs_since < 0) {
            say(fmt::format("rank {} of generation {} hangs", process->rank, process->generation));
            trouble(process->node);
            process->hangs_since = now_;
            run_->find(process->generation)->has_trouble = true;
          }
        });
        break;
      case 4:
      case 5:
        plan(at, [=, this] {
          FakeNode& node = *some_node();
          if (!node.is_up) return;
          say(fmt::format("{} is lost", node.name()));
          node.is_up = false;
          node.logic.reset();
          node.has_trouble = true;
          node.returns_at = chance(0.8) ? now_ + uniform(5, 50) : -1.0;
          run_->lose_node(index_of(node.name()), now_);
        });
        break;
      case 6:
      case 7:
        plan(at, [=, this] {
          FakeNode& node = *some_node();
          if (node.logic) crash_monitor(node, uniform(0.3, chance(0.2) ? 20.0 : 2.0));
        });
        break;
      case 8:
        plan(at, [=, this] { crash_supervisor("killed"); });
        break;
      case 9:
        plan(at, [=, this] {
          if (supervisors_.empty()) return;
          say("the supervisor freezes");
          supervisors_.back()->frozen_until = now_ + uniform(3, 20);
          if (chance(0.6)) supervisor_returns_ = now_ + uniform(1, 10);  // and somebody starts another one
        });
        break;
      case 10:
        plan(at, [=, this] {
          Generation* const newest = run_->newest();
          if (newest == nullptr || newest->store == nullptr || !newest->store->is_alive()) return;
          say("the store is killed");
          trouble(newest->store->node);
          run_->kill(*newest->store, 9, now_);
        });
        break;
      case 11:
        plan(at, [=, this] {
          FakeNode& node = *some_node();
          node.cut_since = now_;
          node.cut_until = now_ + uniform(1, 40);
          say(fmt::format("{} is cut off until {:.1f}", node.name(), node.cut_until));
        });
        break;
      case 12:
        plan(at, [=, this] {
          say("the run directory is gone");
          directory_.is_gone = true;
          directory_returns_ = now_ + uniform(2, 30);
        });
        break;
      case 13:
        plan(at, [=, this] {
          if (Process* const process = some_rank()) {
            say(fmt::format("rank {} of generation {} cannot be killed", process->rank, process->generation));
            trouble(process->node);
            process->is_unkillable = true;
            process->hangs_since = now_;
            run_->find(process->generation)->has_trouble = true;
          }
        });
        break;
      default:
        plan(at, [=, this] {
          FakeNode& node = *some_node();
          node.crashes_in_next_effect = true;
          if (chance(0.3)) node.fails_checks = node.has_trouble = true;
        });
    }
    faults_end_ = std::max(faults_end_, at + 60.0);
  }
  if (!options_.few_faults && chance(0.05)) {
    plan(uniform(5, end), [this] {
      FakeNode& node = *nodes_.front();
      if (node.logic) node.logic->request_stop(30.0);
      say("the run is asked to stop");
    });
  }
  injected_ = std::ssize(faults_);
  std::sort(faults_.begin(), faults_.end());
}

Simulation::Simulation(uint64_t seed, const SimulationOptions& options) : options_(options), random_(seed) {
  const int64_t nodes = pick(options.min_nodes, options.max_nodes);
  const int64_t spares = pick(0, std::min<int64_t>(3, nodes - 1));
  const bool bad_network = chance(0.5);
  lost_share_ = bad_network ? uniform(0, 0.05) : 0.0;
  doubled_share_ = bad_network ? uniform(0, 0.05) : 0.0;
  late_share_ = bad_network ? uniform(0, 0.05) : 0.0;
  crash_share_ = chance(0.3) ? uniform(0, 0.02) : 0.0;
  if (options.failing_writes >= 0) crash_share_ = options.failing_writes;
  run_ = std::make_unique<FakeRun>(FakeRunOptions{.step_seconds = uniform(0.5, 2.0),
                                                  .steps = options.few_faults ? 25 : pick(30, 60),
                                                  .ranks_per_node = pick(1, 2),
                                                  .crashes_in_first_step = !options.few_faults && chance(0.02)},
                                   static_cast<size_t>(nodes), random_);
  settings_ = {.run = kRun,
               .nodes = nodes - spares,
               .ranks_per_node = run_->options().ranks_per_node,
               .config = "name: simulated",
               .initial_rank_heartbeat_timeout = 60,
               .start_timeout = 60,
               .workload_downtime_threshold = 60,
               .scale_up_after = 20,
               .save_timeout = 60};
  if (chance(0.3)) {
    for (int64_t fewer = settings_.nodes - 1; fewer >= 1; fewer -= pick(1, 2)) settings_.fewer_nodes.push_back(fewer);
  }
  if (!options.policy.empty()) settings_.ladder.replace_rows(options.policy, "policy");
  directory_.is_exclusive = options.exclusive_create;
  directory_.fate = [this] {
    if (crash_share_ == 0.0 || now_ > 90.0 || !chance(crash_share_)) return FakeDirectory::Fate::done;
    return static_cast<FakeDirectory::Fate>(pick(1, 5));
  };
  for (int64_t index = 0; index < nodes; ++index) {
    nodes_.push_back(std::make_unique<FakeNode>(*this, static_cast<size_t>(index)));
    nodes_.back()->name_ = fmt::format("node{}", index);
    nodes_.back()->monitor_returns = uniform(0, 3);
  }
  plan_faults();
}

SimulationResult Simulation::run() {
  const double limit = std::max(faults_end_, 90.0) + kBound;
  auto fault = faults_.begin();
  while (!exit_code_ && !violation_ && now_ < limit) {
    now_ += kTick;
    for (; fault != faults_.end() && fault->at <= now_; ++fault) fault->strike();
    if (directory_returns_ >= 0 && now_ >= directory_returns_) {
      directory_.is_gone = false;
      directory_returns_ = -1.0;
    }
    if (directory_.has_late_writes() && chance(0.1)) directory_.let_late_writes_arrive();
    run_->advance(now_);
    deliver();
    poll_monitors();
    poll_supervisors();
  }
  if (!exit_code_ && !violation_) {
    const Supervisor* const last = supervisors_.empty() ? nullptr : supervisors_.back()->logic.get();
    violated(Invariant::ends_in_bounded_time,
             fmt::format("after {:.0f} s the run has not ended: {}", now_,
                         last == nullptr  ? "there is no supervisor"
                         : !last->leads() ? last->problem()
                                          : fmt::format("phase {} of generation {}", name_of(last->state().phase),
                                                        last->state().generation())));
  }
  SimulationResult result{.violated = violation_ ? violation_->invariant : Invariant::none,
                          .how = violation_ ? violation_->how : "",
                          .exit_code = exit_code_.value_or(-1),
                          .generations = run_->newest() == nullptr ? 0 : run_->newest()->roster.generation,
                          .faults = injected_,
                          .terms = directory_.newest_term(),
                          .seconds = now_,
                          .story = std::move(story_)};
  return result;
}
}  // namespace

const char* name_of(Invariant invariant) {
  return word_of(kInvariantWords, invariant);
}

SimulationResult simulate(uint64_t seed, const SimulationOptions& options) {
  return Simulation(seed, options).run();
}

}  // namespace megalith::resilience::testing
