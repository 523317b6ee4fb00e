#include "resilience/monitor/monitor_logic.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace megalith::resilience {

namespace {
// Orders that change something on the node; the others only ask.
bool needs_newest_term(OrderKind kind) {
  return kind != OrderKind::greet && kind != OrderKind::inspect && kind != OrderKind::tell;
}
}  // namespace

MonitorLogic::MonitorLogic(MonitorIdentity identity, NodeHost& host, const MonitorGuards& guards)
    : identity_(std::move(identity)), host_(host), guards_(guards) {}

// The newest term is asked of the run directory, not of the supervisors that were heard: one that was overtaken while
// it was frozen may still speak first.
std::optional<std::string> MonitorLogic::why_refused(const Order& order) {
  if (!speaks_our_protocol(order.header.protocol)) {
    return fmt::format("protocol {} is not ours, {}", protocol_name(order.header.protocol), protocol_name(kProtocol));
  }
  if (order.header.run != identity_.run) return fmt::format("run '{}' is not ours", order.header.run);
  if (order.kind == OrderKind::dismiss && order.session != identity_.session) return "another process is meant";
  if (!guards_.refuses_old_terms) return std::nullopt;
  if (order.header.term < term_) return fmt::format("term {} is older than {}", order.header.term, term_);
  if (needs_newest_term(order.kind)) {
    const int64_t newest = host_.newest_term();
    if (order.header.term < newest) return fmt::format("term {} is older than {}", order.header.term, newest);
  }
  return std::nullopt;
}

void MonitorLogic::take(const Order& order) {
  std::optional<std::string> refusal;
  try {
    refusal = why_refused(order);
  } catch (const Error& error) {
    if (order.header.term > term_) last_sequence_ = 0;
    term_ = std::max(term_, order.header.term);
    if (order.header.sequence <= last_sequence_) return;
    last_sequence_ = order.header.sequence;
    return answer(order, Outcome::failed, fmt::format("the newest term is not known: {}", error.what()));
  }
  if (refusal) {
    ++refused_;
    return;
  }
  if (order.header.term > term_) {
    term_ = order.header.term;
    last_sequence_ = 0;
  }
  if (order.kind == OrderKind::greet) return;
  if (order.header.sequence <= last_sequence_) {
    if (order.header.sequence < last_sequence_) ++refused_;
    reports_at_once_ = true;  // the result may have been lost
    return;
  }
  last_sequence_ = order.header.sequence;
  killing_.reset();
  holdings_.reset();
  reports_at_once_ = true;
  try {
    carry_out(order);
  } catch (const Error& error) {
    answer(order, Outcome::failed, error.what());
  }
}

void MonitorLogic::carry_out(const Order& order) {
  switch (order.kind) {
    case OrderKind::greet:
      return;
    case OrderKind::inspect:
      inspects_ = true;
      return answer(order, Outcome::done);
    case OrderKind::kill:
      host_.kill_up_to(order.header.generation);
      killing_ = order;
      poll();
      return;
    case OrderKind::stop:
      host_.ask_to_stop(order.header.generation);
      return answer(order, Outcome::done);
    case OrderKind::check:
      check_evidence_.clear();
      check_ = host_.check(check_evidence_);
      return answer(order, Outcome::done);
    case OrderKind::tell:
      holdings_ = host_.holdings();
      return answer(order, Outcome::done);
    case OrderKind::serve_store:
      return serve_store(order);
    case OrderKind::start:
      return start(order);
    case OrderKind::finish:
      exit_code_ = order.exit_code;
      return answer(order, Outcome::done);
    case OrderKind::dismiss:
      exit_code_ = megalith::exit_code(ErrorKind::user);
      return answer(order, Outcome::done);
  }
  answer(order, Outcome::refused, "an order that this monitor does not know");
}

std::optional<Roster> MonitorLogic::ordered_roster(const Order& order, std::string& problem) {
  std::optional<Roster> roster = host_.newest_roster();
  if (roster) generation_ = std::max(generation_, roster->generation);
  if (!roster || roster->generation != order.header.generation || digest_of(*roster) != order.roster_digest) {
    problem = fmt::format(
        "generation {} is ordered, and the newest roster in the run directory is {}", order.header.generation,
        roster ? fmt::format("that of generation {}, digest {}", roster->generation, digest_of(*roster))
               : std::string("missing"));
    return std::nullopt;
  }
  if (roster->node(identity_.node) == nullptr) {
    problem = fmt::format("node '{}' has no ranks in generation {}", identity_.node, roster->generation);
    return std::nullopt;
  }
  return roster;
}

void MonitorLogic::serve_store(const Order& order) {
  std::string problem;
  const std::optional<Roster> roster = ordered_roster(order, problem);
  if (!roster || roster->store_node != identity_.node) {
    return answer(order, Outcome::refused, roster ? "another node serves the store" : problem);
  }
  store_ = host_.serve_store(*roster);
  store_generation_ = roster->generation;
  answer(order, Outcome::done);
}

void MonitorLogic::start(const Order& order) {
  std::string problem;
  const std::optional<Roster> roster = ordered_roster(order, problem);
  if (!roster) return answer(order, Outcome::refused, problem);
  const int64_t first = roster->node(identity_.node)->index * roster->ranks_per_node;
  for (int64_t rank = first; rank < first + roster->ranks_per_node; ++rank) {
    host_.start_rank(*roster, rank, order.store, order.holders);
  }
  answer(order, Outcome::done);
}

bool MonitorLogic::poll() {
  if (killing_) {
    try {
      if (host_.is_clear_of(killing_->header.generation)) {
        const Order killed = *std::exchange(killing_, std::nullopt);
        answer(killed, Outcome::done);
      }
    } catch (const Error& error) {
      const Order failed = *std::exchange(killing_, std::nullopt);
      answer(failed, Outcome::failed, error.what());
    }
  }
  return std::exchange(reports_at_once_, false);
}

void MonitorLogic::request_stop(double grace_seconds) {
  if (stop_requested_) return;
  stop_requested_ = true;
  stop_grace_ = grace_seconds;
  reports_at_once_ = true;
}

void MonitorLogic::answer(const Order& order, Outcome outcome, const std::string& reason) {
  if (outcome == Outcome::refused) ++refused_;
  result_ = Result{.term = order.header.term,
                   .sequence = order.header.sequence,
                   .order = order.kind,
                   .generation = order.header.generation,
                   .outcome = outcome,
                   .reason = reason};
  reports_at_once_ = true;
}

Report MonitorLogic::report() {
  Report report{.header = {.run = identity_.run,
                           .term = term_,
                           .generation = generation_,
                           .sequence = ++sent_,
                           .sender = identity_.node},
                .address = identity_.address,
                .boot_id = identity_.boot_id,
                .session = identity_.session,
                .overslept = std::exchange(overslept_, 0.0),
                .ranks = host_.processes(std::exchange(inspects_, false)),
                .result = result_,
                .tells_holdings = holdings_.has_value(),
                .holdings = holdings_.value_or(std::vector<Holding>{}),
                .holder = host_.holder_place(),
                .check = check_,
                .check_evidence = check_evidence_,
                .stop_requested = stop_requested_,
                .stop_grace = stop_grace_,
                .refused = refused_};
  for (const RankReport& rank : report.ranks)
    report.header.generation = std::max(report.header.generation, rank.generation);
  if (store_ && store_generation_ == generation_) report.store = store_;
  return report;
}

}  // namespace megalith::resilience
