#include "resilience/supervise/actuator.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "resilience/decide/holdings.h"
#include "resilience/record/journal.h"

namespace megalith::resilience {

Actuator::Actuator(const RunState& state, ControlDirectory& directory, SupervisorTransport& transport, Alarm alarm)
    : state_(state), directory_(directory), transport_(transport), alarm_(std::move(alarm)) {}

void Actuator::carry_out(const std::vector<Action>& actions, double now, std::vector<Fact>& facts) {
  for (const Action& action : actions) {
    switch (action.kind) {
      case Action::Kind::order:
        give(action);
        break;
      case Action::Kind::claim:
        claim(now, facts);
        break;
      case Action::Kind::alarm:
        alarm_(action.reason);
        break;
    }
  }
}

Order Actuator::order_of(OrderKind kind, int64_t generation) {
  return {.header = {.run = state_.settings.run,
                     .term = state_.term,
                     .generation = generation,
                     .sequence = ++sequence_,
                     .sender = "supervisor"},
          .kind = kind};
}

void Actuator::give(const Action& action) {
  Order order = order_of(action.order, action.generation);
  order.exit_code = action.exit_code;
  order.reason = action.reason;
  if (action.order == OrderKind::start || action.order == OrderKind::serve_store) order.roster_digest = roster_digest();
  if (action.order == OrderKind::start) {
    order.store = store_;
    order.holders = holders_for(action.node);
  }
  transport_.send(action.node, order);
  open_[action.node] = std::move(order);
  given_.insert(action.node);
}

const std::string& Actuator::roster_digest() {
  if (digest_generation_ != state_.generation()) {
    digest_ = digest_of(*state_.roster);
    digest_generation_ = state_.generation();
  }
  return digest_;
}

// Those that hold parts which this node's ranks will read; of another layout's checkpoint every holder.
std::vector<Holder> Actuator::holders_for(const std::string& node) const {
  const Roster& roster = *state_.roster;
  const RosterNode* const member = roster.node(node);
  if (member == nullptr) return {};
  const int64_t first = member->index * roster.ranks_per_node;
  const auto has_some = [&](const Holding& holding) {
    if (holding.step != roster.from_step || holding.tier == Tier::persistent) return false;
    const auto part = std::lower_bound(holding.held.begin(), holding.held.end(), first);
    return holding.parts != roster.world_size || (part != holding.held.end() && *part < first + roster.ranks_per_node);
  };
  std::vector<Holder> holders;
  for (const auto& [name, place] : holders_) {
    const auto known = state_.nodes.find(name);
    if (known == state_.nodes.end() || !known->second.is_heard) continue;
    const std::vector<Holding>& held = known->second.holdings;
    if (std::any_of(held.begin(), held.end(), has_some)) holders.push_back({.node = name, .place = place});
  }
  return holders;
}

void Actuator::claim(double now, std::vector<Fact>& facts) {
  const Roster& roster = *state_.next;
  Fact fact{.kind = FactKind::claimed, .time = now, .generation = roster.generation};
  try {
    if (newest_term(directory_) != state_.term) {
      throw Error(ErrorKind::io, "another supervisor leads by now");
    }
    if (claim_roster(directory_, roster) == Claim::conflict) fact.kind = FactKind::claim_conflict;
  } catch (const Error& error) {
    fact.kind = FactKind::claim_failed;
    fact.evidence = error.what();
  }
  facts.push_back(std::move(fact));
}

void Actuator::take(const Report& report, double now, std::vector<Fact>& facts) {
  const std::string& node = report.header.sender;
  if (report.holder.port != 0) holders_[node] = report.holder;
  if (report.store && state_.roster && state_.roster->store_node == node &&
      report.header.generation == state_.generation()) {
    store_ = *report.store;
    store_generation_ = state_.generation();
  }
  const auto open = open_.find(node);
  if (open == open_.end() || !report.result) return;
  const Result& result = *report.result;
  const Order& order = open->second;
  if (result.term != order.header.term || result.sequence != order.header.sequence) return;
  const bool lacks_store = order.kind == OrderKind::serve_store && result.outcome == Outcome::done &&
                           store_generation_ != order.header.generation;
  if (lacks_store) return;
  facts.push_back(fact_of(order, report, now));
  open_.erase(open);
}

Fact Actuator::fact_of(const Order& order, const Report& report, double now) const {
  Fact fact{.kind = FactKind::order_done,
            .time = now,
            .node = report.header.sender,
            .generation = order.header.generation,
            .evidence = report.result->reason,
            .order = name_of(order.kind)};
  if (report.result->outcome != Outcome::done) {
    fact.kind = FactKind::order_failed;
    return fact;
  }
  switch (order.kind) {
    case OrderKind::check:
      fact.kind = FactKind::checked;
      fact.number = static_cast<int64_t>(report.check);
      fact.evidence = report.check_evidence;
      break;
    case OrderKind::tell:
      fact.kind = FactKind::holdings;
      fact.text = to_text(report.holdings);
      break;
    case OrderKind::serve_store:
      fact.kind = FactKind::store_ready;
      fact.text = store_.address;
      fact.number = store_.port;
      break;
    default:
      break;
  }
  return fact;
}

void Actuator::repeat() {
  for (const auto& [name, node] : state_.nodes) {
    if (!node.is_heard || given_.contains(name)) continue;
    const auto open = open_.find(name);
    transport_.send(name, open != open_.end() ? open->second : order_of(OrderKind::greet, state_.generation()));
  }
  given_.clear();
}

void Actuator::dismiss(const std::string& node, int64_t session, const std::string& reason) {
  Order order = order_of(OrderKind::dismiss, state_.generation());
  order.session = session;
  order.reason = reason;
  transport_.send(node, order);
}

}  // namespace megalith::resilience
