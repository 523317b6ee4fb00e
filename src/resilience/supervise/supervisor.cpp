#include "resilience/supervise/supervisor.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"

namespace megalith::resilience {

namespace {
constexpr double kLook = 1.0;         // seconds
constexpr double kOwnSleep = 2.0;     // later than that means that this process was stopped
constexpr double kTryAgain = 5.0;     // to lead
constexpr size_t kMostNamed = 1000;   // refused senders
constexpr int64_t kTermsToTry = 100;  // at once: as many others would have to be quicker
}  // namespace

Supervisor::Leadership::Leadership(Journal its_journal, RunState its_state, double its_offset, Supervisor& owner)
    : journal(std::move(its_journal)),
      state(std::move(its_state)),
      offset(its_offset),
      sensor(state, owner.guards_.sensor),
      actuator(state, owner.directory_, owner.transport_, owner.identity_.alarm) {}

Supervisor::Supervisor(Settings settings, SupervisorIdentity identity, ControlDirectory& directory,
                       SupervisorTransport& transport, const SupervisorGuards& guards)
    : settings_(std::move(settings)),
      identity_(std::move(identity)),
      directory_(directory),
      transport_(transport),
      guards_(guards) {}

// The term is claimed before the journals are read, so that nobody appends to what counts after it was read: an older
// leader's later entries are not among those that the first entry names.
void Supervisor::try_to_lead(const Moment& now) {
  const JournalOrigin origin{.run = settings_.run, .boot_id = identity_.boot_id};
  std::optional<Journal> journal;
  for (int64_t term = newest_term(directory_) + 1, tries = 0; !journal && tries < kTermsToTry; ++term, ++tries) {
    journal = Journal::claim(directory_, term, origin);
  }
  if (!journal) throw Error(ErrorKind::io, "no term could be taken: others were always quicker");
  Inheritance inheritance = inherit(directory_, settings_.run, guards_.controller);
  Fact lead = lead_fact(inheritance, directory_, settings_, journal->term(), identity_.boot_id, now);
  if (std::exchange(identity_.is_new_fleet, false)) lead.evidence = kNewFleet;
  journal->append(lead, now);
  journal->sync();
  decide(inheritance.state, lead, guards_.controller);
  leadership_ =
      std::make_unique<Leadership>(*std::move(journal), std::move(inheritance.state), lead.time - now.monotonic, *this);
  looked_ = polled_ = -1.0;
  problem_.clear();
}

void Supervisor::poll(const Moment& now) {
  if (!leads()) {
    while (transport_.receive()) {
    }
    if (now.monotonic < tries_again_) return;
    tries_again_ = now.monotonic + kTryAgain;
    try {
      try_to_lead(now);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::io) throw;
      if (std::exchange(problem_, error.what()).empty()) identity_.alarm(error.what());
      return;
    }
  }
  // While this process slept, nobody could be heard: on the run's axis that time has not passed.
  const double slept = polled_ < 0 ? 0.0 : now.monotonic - polled_;
  polled_ = now.monotonic;
  if (slept > kOwnSleep) leadership_->offset -= slept;
  const double time = now.monotonic + leadership_->offset;
  try {
    if (wish_) {
      wish_->time = time;
      take({*std::exchange(wish_, std::nullopt)}, now);
    }
    while (const std::optional<Report> report = transport_.receive()) {
      std::vector<Fact> facts;
      hear(*report, time, facts);
      take(std::move(facts), now);
    }
    while (const std::optional<std::string> node = transport_.next_broken())
      leadership_->sensor.lost_session(*node, time);
    std::vector<Fact> facts;
    if (looked_ >= 0 && time - looked_ < kLook && !leadership_->sensor.look_is_due(time)) return;
    looked_ = time;
    end_if_overtaken();
    leadership_->sensor.look(time, facts);
    facts.push_back({.kind = FactKind::tick, .time = time});
    take(std::move(facts), now);
    leadership_->actuator.repeat();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    problem_ = error.what();
    identity_.alarm(fmt::format("the journal cannot be written, and nobody decides until it can: {}", error.what()));
    leadership_.reset();
    tries_again_ = now.monotonic + kTryAgain;
  }
}

// Monitors refuse a term that is not the newest, also where its successor has died at once.
void Supervisor::end_if_overtaken() const {
  int64_t newest = 0;
  try {
    newest = newest_term(directory_);
  } catch (const Error&) {
    return;  // while the run directory is not there, nobody overtakes
  }
  if (newest > leadership_->state.term) {
    fail(ErrorKind::comm, "term {} of this run was taken by another supervisor, and this one, of term {}, ends", newest,
         leadership_->state.term);
  }
}

// Whoever is refused is counted each time, and named once.
bool Supervisor::is_for_us(const Report& report) {
  const Header& header = report.header;
  if (speaks_our_protocol(header.protocol) && header.run == settings_.run) return true;
  ++refused_;
  const bool is_new = refused_senders_.size() < kMostNamed && refused_senders_.insert(header.sender).second;
  if (!is_new) return false;
  if (!speaks_our_protocol(header.protocol)) {
    identity_.alarm(
        fmt::format("node {} is refused: its monitor speaks protocol {}, this supervisor {}; run the same version of "
                    "megalith there",
                    header.sender, protocol_name(header.protocol), protocol_name(kProtocol)));
  } else {
    identity_.alarm(fmt::format("node {} is refused: its monitor is of run '{}', this supervisor of '{}'",
                                header.sender, header.run, settings_.run));
  }
  return false;
}

void Supervisor::hear(const Report& report, double now, std::vector<Fact>& facts) {
  if (!is_for_us(report)) return;
  if (report.header.term > leadership_->state.term) {
    fail(ErrorKind::comm, "a supervisor of term {} leads this run, and this one, of term {}, ends", report.header.term,
         leadership_->state.term);
  }
  switch (leadership_->sensor.take(report, now, facts)) {
    case Sensor::Verdict::taken:
      return leadership_->actuator.take(report, now, facts);
    case Sensor::Verdict::stranger:
      leadership_->actuator.dismiss(report.header.sender, report.session,
                                    fmt::format("a node named {} is here already", report.header.sender));
      [[fallthrough]];
    case Sensor::Verdict::stale:
      ++refused_;
  }
}

// Facts may lead to further ones. What follows from them leaves when the journal is on disk.
void Supervisor::take(std::vector<Fact> facts, const Moment& now) {
  std::deque<Fact> open(std::make_move_iterator(facts.begin()), std::make_move_iterator(facts.end()));
  while (!open.empty()) {
    const Fact fact = std::move(open.front());
    open.pop_front();
    const Decision decision = decide(leadership_->state, fact, guards_.controller);
    const bool is_kept = decision.has_changed || !decision.actions.empty();
    if (is_kept && (guards_.journals_every_fact || decision.actions.empty())) leadership_->journal.append(fact, now);
    if (decision.actions.empty()) continue;
    leadership_->journal.sync();
    std::vector<Fact> further;
    leadership_->actuator.carry_out(decision.actions, fact.time, further);
    for (Fact& next : further) open.push_back(std::move(next));
  }
}

void Supervisor::request_stop(double grace_seconds, const std::string& who) {
  wish_ = Fact{.kind = FactKind::stop_requested, .seconds = grace_seconds, .evidence = who};
}

std::optional<int64_t> Supervisor::exit_code() const {
  if (!leads() || leadership_->state.phase != RunPhase::over) return std::nullopt;
  return leadership_->state.verdict;
}

}  // namespace megalith::resilience
