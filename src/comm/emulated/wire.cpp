#include "comm/emulated/wire.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>

namespace megalith::comm {

namespace {

constexpr std::array kKinds = {LinkKind::inside, LinkKind::between};

constexpr size_t index_of(LinkKind kind) {
  return static_cast<size_t>(kind);
}

const char* place_of(LinkKind kind) {
  return kind == LinkKind::inside ? "inside a machine" : "between machines";
}

LinkKind kind_of(const GroupSpan& span) {
  return span.machines > 1 ? LinkKind::between : LinkKind::inside;
}

LinkKind kind_to(const Wire& wire, const Group& group, int peer) {
  const int own = group.ranks[static_cast<size_t>(group.member)];
  const int other = group.ranks[static_cast<size_t>(peer)];
  return own / wire.ranks_per_machine == other / wire.ranks_per_machine ? LinkKind::inside : LinkKind::between;
}

// How often a collective goes around the machines, one after the other. All-to-all goes to each directly.
double rounds_of(Operation operation) {
  if (operation == Operation::all_reduce || operation == Operation::barrier) return 2.0;
  return operation == Operation::all_to_all ? 0.0 : 1.0;
}

// Of a call of the group, over this rank's links. Between machines every rank's NIC carries its part of what goes to
// the next machine, and the links inside bring all of it to all NICs.
std::array<double, kLinkKinds> loads_of(Operation operation, int64_t bytes, const GroupSpan& span) {
  const double all = wire_bytes(operation, bytes, span.members);
  if (span.machines == 1) return {all, 0.0};
  // In a ring of messages, as `bench comm` sends them, one goes from each machine to the next.
  if (operation == Operation::exchange) return {0.0, all};
  if (operation == Operation::all_to_all) {
    const double beyond = all * (span.members - span.ranks_on_machine) / (span.members - 1);
    return {all - beyond, beyond};
  }
  return {span.ranks_on_machine > 1 ? all : 0.0, all / span.ranks_on_machine};
}

// NCCL gives each channel, which is a block, at least this much to do.
int blocks_for(double bytes, int most) {
  constexpr double kBytesPerBlock = 32 << 10;
  return static_cast<int>(std::clamp(std::ceil(bytes / kBytesPerBlock), 1.0, static_cast<double>(std::max(1, most))));
}

// What the exchange moves over each kind of link, in the direction that has more.
std::array<double, kLinkKinds> exchange_loads(const Wire& wire, const Group& group, const Call& call) {
  std::array<double, kLinkKinds> out{};
  std::array<double, kLinkKinds> in{};
  for (const Message& message : call.sends)
    out[index_of(kind_to(wire, group, message.peer))] += static_cast<double>(message.tensor.bytes());
  for (const Message& message : call.receives)
    in[index_of(kind_to(wire, group, message.peer))] += static_cast<double>(message.tensor.bytes());
  return {std::max(out[0], in[0]), std::max(out[1], in[1])};
}

std::array<bool, kLinkKinds> exchange_kinds(const Wire& wire, const Group& group, const Call& call) {
  std::array<bool, kLinkKinds> used{};
  for (const auto* messages : {&call.sends, &call.receives}) {
    for (const Message& message : *messages) used[index_of(kind_to(wire, group, message.peer))] = true;
  }
  return used;
}

GroupSpan span_of(const MeasuredCall& call) {
  return {.members = call.members,
          .machines = call.machines,
          .ranks_on_machine = std::max(1, call.members / std::max(1, call.machines))};
}

void check_measured(const std::string& name, const MeasuredCall& call) {
  const bool can_be = std::isfinite(call.seconds) && call.seconds > 0.0 && call.members > 1 && call.machines > 0 &&
                      call.machines <= call.members && call.bytes >= 0;
  if (can_be) return;
  user_error("the wire '{}' has {} of {} bytes by {} ranks on {} machines in {} s, which cannot be", name,
             name_of(call.operation), call.bytes, call.members, call.machines, call.seconds);
}

// Times of calls by what the link carries.
class TimeTable {
 public:
  // Of the measured groups that use this kind of link, the one most like `span`.
  TimeTable(const Wire& wire, Operation operation, LinkKind kind, const GroupSpan& span) {
    std::map<std::tuple<int, int, int>, std::map<double, double>> groups;
    for (const MeasuredCall& call : wire.measured) {
      const GroupSpan there = span_of(call);
      if (call.operation != operation || kind_of(there) != kind) continue;
      const std::tuple unlike{std::abs(there.ranks_on_machine - span.ranks_on_machine),
                              std::abs(there.members - span.members), there.members};
      groups[unlike][loads_of(operation, call.bytes, there)[index_of(kind)]] = call.seconds;
    }
    if (groups.empty()) {
      user_error("the wire '{}' has no {} {}: measure it there with `megalith bench comm`", wire.name,
                 name_of(operation), place_of(kind));
    }
    seconds_ = std::move(groups.begin()->second);
  }

  double smallest() const { return seconds_.begin()->second; }

  double at(double bytes) const {
    const auto above = seconds_.lower_bound(bytes);
    if (above == seconds_.begin()) return above->second;
    const auto below = std::prev(above);
    // A line through the origin: at the rate of the largest.
    if (above == seconds_.end()) return below->second * bytes / std::max(1.0, below->first);
    if (below->first <= 0.0) return above->second;
    const double share = std::log(bytes / below->first) / std::log(above->first / below->first);
    return below->second * std::pow(above->second / below->second, share);
  }

 private:
  std::map<double, double> seconds_;
};

// Loads under which the call lasts as long as was measured when it is alone, and shares the link when it is not.
void take_measured_time(const Wire& wire, LinkKind kind, const TimeTable& table, CallCost& cost) {
  const double alone = table.at(cost.bytes[index_of(kind)]);
  const double latency = std::min(alone, table.smallest());
  cost.latency = std::max(cost.latency, latency);
  cost.bytes[index_of(kind)] = (alone - latency) * wire.link(kind).bytes_per_second;
}

CallCost cost_of_exchange(const Wire& wire, const Group& group, const Call& call) {
  CallCost cost{.bytes = exchange_loads(wire, group, call)};
  const std::array<bool, kLinkKinds> used = exchange_kinds(wire, group, call);
  for (const LinkKind kind : kKinds) {
    if (!used[index_of(kind)]) continue;
    const Link& link = wire.link(kind);
    cost.blocks = std::max(cost.blocks, blocks_for(cost.bytes[index_of(kind)], link.message_blocks));
    if (wire.measured.empty()) {
      cost.latency = std::max(cost.latency, link.call_seconds);
    } else {
      const int machines = kind == LinkKind::between ? 2 : 1;
      take_measured_time(
          wire, kind, {wire, call.operation, kind, {.members = 2, .machines = machines, .ranks_on_machine = 1}}, cost);
    }
  }
  return cost;
}

}  // namespace

Wire measured_wire(std::string name, std::vector<MeasuredCall> calls) {
  Wire wire{.name = std::move(name), .ranks_per_machine = 1};
  for (const MeasuredCall& call : calls) {
    check_measured(wire.name, call);
    const GroupSpan span = span_of(call);
    wire.ranks_per_machine = std::max(wire.ranks_per_machine, span.ranks_on_machine);
    const LinkKind kind = kind_of(span);
    double& rate = wire.link(kind).bytes_per_second;
    rate = std::max(rate, loads_of(call.operation, call.bytes, span)[index_of(kind)] / call.seconds);
  }
  wire.measured = std::move(calls);
  return wire;
}

GroupSpan span_of(const std::vector<int>& ranks, int ranks_per_machine) {
  std::map<int, int> on_machine;
  for (const int rank : ranks) ++on_machine[rank / ranks_per_machine];
  GroupSpan span{.members = static_cast<int>(ranks.size()),
                 .machines = static_cast<int>(on_machine.size()),
                 .ranks_on_machine = static_cast<int>(ranks.size())};
  for (const auto& [machine, count] : on_machine) span.ranks_on_machine = std::min(span.ranks_on_machine, count);
  return span;
}

void check_wire(const Wire& wire) {
  if (wire.ranks_per_machine < 1)
    user_error("the wire '{}' joins {} ranks inside a machine: at least 1", wire.name, wire.ranks_per_machine);
  bool joins = false;
  for (const LinkKind kind : kKinds) {
    const Link& link = wire.link(kind);
    for (const double value : {link.bytes_per_second, link.call_seconds, link.hop_seconds}) {
      if (!std::isfinite(value) || value < 0.0)
        user_error("the wire '{}' {}: {} is no rate and no time", wire.name, place_of(kind), value);
    }
    joins = joins || link.bytes_per_second > 0.0;
  }
  if (!joins) user_error("the wire '{}' has a bandwidth of 0, inside machines and between them", wire.name);
  for (const MeasuredCall& call : wire.measured) check_measured(wire.name, call);
}

void check_group(const Wire& wire, const Group& group) {
  const GroupSpan span = span_of(group.ranks, wire.ranks_per_machine);
  const bool needs_inside = span.machines < span.members;
  for (const LinkKind kind : kKinds) {
    const bool needed = kind == LinkKind::inside ? needs_inside : span.machines > 1;
    if (!needed || wire.link(kind).bytes_per_second > 0.0) continue;
    user_error("the wire '{}' has no link {}, which group '{}' needs: it has {} ranks on {} machine{} of {} each",
               wire.name, place_of(kind), group.name, span.members, span.machines, span.machines == 1 ? "" : "s",
               wire.ranks_per_machine);
  }
}

CallCost cost_of(const Wire& wire, const Group& group, const Call& call) {
  if (call.operation == Operation::exchange) return cost_of_exchange(wire, group, call);
  const GroupSpan span = span_of(group.ranks, wire.ranks_per_machine);
  const LinkKind kind = kind_of(span);
  const Link& link = wire.link(kind);
  CallCost cost{.bytes = loads_of(call.operation, call.bytes(), span)};
  cost.blocks = blocks_for(wire_bytes(call.operation, call.bytes(), span.members), link.blocks);
  if (wire.measured.empty()) {
    cost.latency = link.call_seconds + rounds_of(call.operation) * link.hop_seconds * (span.machines - 1);
    return cost;
  }
  take_measured_time(wire, kind, {wire, call.operation, kind, span}, cost);
  // A call between machines lasts as it was measured, whatever it does inside of them.
  if (kind == LinkKind::between) {
    const double moving = cost.bytes[index_of(kind)] / link.bytes_per_second;
    double& inside = cost.bytes[index_of(LinkKind::inside)];
    inside = std::min(inside, moving * wire.link(LinkKind::inside).bytes_per_second);
  }
  return cost;
}

double seconds_alone(const Wire& wire, const CallCost& cost) {
  double moving = 0.0;
  for (const LinkKind kind : kKinds) {
    const double bytes = cost.bytes[index_of(kind)];
    if (bytes > 0.0) moving = std::max(moving, bytes / wire.link(kind).bytes_per_second);
  }
  return cost.latency + moving;
}

}  // namespace megalith::comm
