#include "resilience/grpc/wire.h"

#include <algorithm>

#include "control.pb.h"

namespace megalith::resilience {

namespace {
// Remembers whether all words of enums that it was given are ours.
class Words {
 public:
  template <class Enum>
  Enum take(uint32_t word, int count) {
    are_known_ = are_known_ && word < static_cast<uint32_t>(count);
    return static_cast<Enum>(word);
  }
  bool are_known() const { return are_known_; }

 private:
  bool are_known_ = true;
};

template <class Enum>
uint32_t word_of(Enum value) {
  return static_cast<uint32_t>(value);
}

std::vector<int64_t> numbers_of(const google::protobuf::RepeatedField<int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

void write(const Header& header, control::Header& wire) {
  wire.set_protocol(header.protocol);
  wire.set_run(header.run);
  wire.set_term(header.term);
  wire.set_generation(header.generation);
  wire.set_sequence(header.sequence);
  wire.set_sender(header.sender);
}

Header read(const control::Header& wire) {
  return {.protocol = wire.protocol(),
          .run = wire.run(),
          .term = wire.term(),
          .generation = wire.generation(),
          .sequence = wire.sequence(),
          .sender = wire.sender()};
}

void write(const Place& place, control::Place& wire) {
  wire.set_address(place.address);
  wire.set_port(place.port);
  wire.set_secret(place.secret);
}

Place read(const control::Place& wire) {
  return {.address = wire.address(), .port = wire.port(), .secret = wire.secret()};
}

void write(const GroupCalls& calls, control::GroupCalls& wire) {
  wire.set_group(calls.group);
  wire.set_operation(calls.operation);
  wire.set_entered(calls.entered);
  wire.set_finished(calls.finished);
  wire.set_bytes(calls.bytes);
  wire.set_exchanges(calls.exchanges);
  wire.mutable_peers()->Assign(calls.peers.begin(), calls.peers.end());
}

GroupCalls read(const control::GroupCalls& wire) {
  return {.group = wire.group(),
          .operation = wire.operation(),
          .entered = wire.entered(),
          .finished = wire.finished(),
          .bytes = wire.bytes(),
          .exchanges = wire.exchanges(),
          .peers = numbers_of(wire.peers())};
}

void write(const PageReport& page, control::PageReport& wire) {
  wire.set_section(word_of(page.section));
  wire.set_section_seconds(page.section_seconds);
  wire.mutable_longest()->Assign(page.longest.begin(), page.longest.end());
  wire.set_step(page.step);
  wire.set_micro_batch(page.micro_batch);
  wire.set_beats(page.beats);
  wire.set_beat_seconds(page.beat_seconds);
  wire.set_working_seconds(page.working_seconds);
  wire.set_local_step(page.local_step);
  wire.set_persistent_step(page.persistent_step);
  for (const GroupCalls& calls : page.calls) write(calls, *wire.add_calls());
  control::Ending& ending = *wire.mutable_ending();
  ending.set_kind(word_of(page.ending.kind));
  ending.set_message(page.ending.message);
  ending.mutable_ranks()->Assign(page.ending.ranks.begin(), page.ending.ranks.end());
}

PageReport read(const control::PageReport& wire, Words& words) {
  PageReport page{.section = words.take<Section>(wire.section(), kSections),
                  .section_seconds = wire.section_seconds(),
                  .step = wire.step(),
                  .micro_batch = wire.micro_batch(),
                  .beats = wire.beats(),
                  .beat_seconds = wire.beat_seconds(),
                  .working_seconds = wire.working_seconds(),
                  .local_step = wire.local_step(),
                  .persistent_step = wire.persistent_step()};
  std::copy_n(wire.longest().begin(), std::min<size_t>(page.longest.size(), wire.longest_size()), page.longest.begin());
  for (const control::GroupCalls& calls : wire.calls()) page.calls.push_back(read(calls));
  page.ending = {.kind = words.take<EndingKind>(wire.ending().kind(), kEndingKinds),
                 .message = wire.ending().message(),
                 .ranks = numbers_of(wire.ending().ranks())};
  return page;
}

void write(const ProcessReport& process, control::ProcessReport& wire) {
  wire.set_state(static_cast<unsigned char>(process.state));
  wire.set_wait_channel(process.wait_channel);
  wire.set_cpu_seconds(process.cpu_seconds);
  wire.set_stack(process.stack);
}

ProcessReport read(const control::ProcessReport& wire) {
  return {.state = static_cast<char>(wire.state()),
          .wait_channel = wire.wait_channel(),
          .cpu_seconds = wire.cpu_seconds(),
          .stack = wire.stack()};
}

void write(const RankReport& rank, control::RankReport& wire) {
  wire.set_rank(rank.rank);
  wire.set_generation(rank.generation);
  wire.set_pid(rank.pid);
  if (rank.page) write(*rank.page, *wire.mutable_page());
  wire.set_page_problem(rank.page_problem);
  if (rank.process) write(*rank.process, *wire.mutable_process());
  if (!rank.end) return;
  wire.mutable_end()->set_signal(rank.end->signal);
  if (rank.end->exit_code) wire.mutable_end()->set_exit_code(*rank.end->exit_code);
}

RankReport read(const control::RankReport& wire, Words& words) {
  RankReport rank{.rank = wire.rank(), .generation = wire.generation(), .pid = wire.pid()};
  if (wire.has_page()) rank.page = read(wire.page(), words);
  rank.page_problem = wire.page_problem();
  if (wire.has_process()) rank.process = read(wire.process());
  if (wire.has_end()) {
    rank.end = ProcessEnd{.signal = wire.end().signal()};
    if (wire.end().has_exit_code()) rank.end->exit_code = wire.end().exit_code();
  }
  return rank;
}

void write(const Holding& holding, control::Holding& wire) {
  wire.set_step(holding.step);
  wire.set_generation(holding.generation);
  wire.set_tier(word_of(holding.tier));
  wire.set_parts(holding.parts);
  wire.mutable_held()->Assign(holding.held.begin(), holding.held.end());
}

Holding read(const control::Holding& wire, Words& words) {
  return {.step = wire.step(),
          .generation = wire.generation(),
          .tier = words.take<Tier>(wire.tier(), kTiers),
          .parts = wire.parts(),
          .held = numbers_of(wire.held())};
}

void write(const Result& result, control::Result& wire) {
  wire.set_term(result.term);
  wire.set_sequence(result.sequence);
  wire.set_order(word_of(result.order));
  wire.set_generation(result.generation);
  wire.set_outcome(word_of(result.outcome));
  wire.set_reason(result.reason);
}

Result read(const control::Result& wire, Words& words) {
  return {.term = wire.term(),
          .sequence = wire.sequence(),
          .order = words.take<OrderKind>(wire.order(), kOrderKinds),
          .generation = wire.generation(),
          .outcome = words.take<Outcome>(wire.outcome(), kOutcomes),
          .reason = wire.reason()};
}
}  // namespace

void write_to(const Report& report, control::Report& wire) {
  write(report.header, *wire.mutable_header());
  wire.set_address(report.address);
  wire.set_boot_id(report.boot_id);
  wire.set_session(report.session);
  wire.set_overslept(report.overslept);
  for (const RankReport& rank : report.ranks) write(rank, *wire.add_ranks());
  if (report.result) write(*report.result, *wire.mutable_result());
  wire.set_tells_holdings(report.tells_holdings);
  for (const Holding& holding : report.holdings) write(holding, *wire.add_holdings());
  write(report.holder, *wire.mutable_holder());
  if (report.store) write(*report.store, *wire.mutable_store());
  wire.set_check(word_of(report.check));
  wire.set_check_evidence(report.check_evidence);
  wire.set_stop_requested(report.stop_requested);
  wire.set_stop_grace(report.stop_grace);
  wire.set_refused(report.refused);
}

std::optional<Report> report_of(std::string_view bytes) {
  control::Report wire;
  if (!wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return std::nullopt;
  if (!speaks_our_protocol(wire.header().protocol())) return Report{.header = read(wire.header())};
  Words words;
  Report report{.header = read(wire.header()),
                .address = wire.address(),
                .boot_id = wire.boot_id(),
                .session = wire.session(),
                .overslept = wire.overslept()};
  for (const control::RankReport& rank : wire.ranks()) report.ranks.push_back(read(rank, words));
  if (wire.has_result()) report.result = read(wire.result(), words);
  report.tells_holdings = wire.tells_holdings();
  for (const control::Holding& holding : wire.holdings()) report.holdings.push_back(read(holding, words));
  report.holder = read(wire.holder());
  if (wire.has_store()) report.store = read(wire.store());
  report.check = words.take<CheckOutcome>(wire.check(), kCheckOutcomes);
  report.check_evidence = wire.check_evidence();
  report.stop_requested = wire.stop_requested();
  report.stop_grace = wire.stop_grace();
  report.refused = wire.refused();
  if (!words.are_known()) return std::nullopt;
  return report;
}

std::string bytes_of(const Order& order) {
  control::Order wire;
  write(order.header, *wire.mutable_header());
  wire.set_kind(word_of(order.kind));
  wire.set_roster_digest(order.roster_digest);
  write(order.store, *wire.mutable_store());
  for (const Holder& holder : order.holders) {
    control::Holder& written = *wire.add_holders();
    written.set_node(holder.node);
    write(holder.place, *written.mutable_place());
  }
  wire.set_exit_code(order.exit_code);
  wire.set_session(order.session);
  wire.set_reason(order.reason);
  return wire.SerializeAsString();
}

std::optional<Order> order_of(std::string_view bytes) {
  control::Order wire;
  if (!wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return std::nullopt;
  return order_of(wire);
}

std::optional<Order> order_of(const control::Order& wire) {
  if (!speaks_our_protocol(wire.header().protocol())) return Order{.header = read(wire.header())};
  Words words;
  Order order{.header = read(wire.header()),
              .kind = words.take<OrderKind>(wire.kind(), kOrderKinds),
              .session = wire.session(),
              .roster_digest = wire.roster_digest(),
              .store = read(wire.store())};
  for (const control::Holder& holder : wire.holders()) {
    order.holders.push_back({.node = holder.node(), .place = read(holder.place())});
  }
  order.exit_code = wire.exit_code();
  order.reason = wire.reason();
  if (!words.are_known()) return std::nullopt;
  return order;
}

}  // namespace megalith::resilience
