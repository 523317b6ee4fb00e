#include "comm/communicator.h"

#include <set>

namespace megalith::comm {

Tensor piece_of(const Tensor& whole, int pieces, int index) {
  const int64_t elements = div_exact(whole.elements(), pieces);
  void* begin = static_cast<std::byte*>(whole.data) + index * elements * size_of(whole.dtype);
  return Tensor(begin, whole.dtype, {elements}, whole.device);
}

void Pending::wait(Stream& stream) const {
  if (state_ == nullptr) return;
  StreamTimes* const times = stream.wait_times();
  if (times != nullptr) times->begin(stream);
  state_->wait(stream);
  if (times != nullptr) times->end(stream);
}

int64_t Call::bytes() const {
  if (operation != Operation::exchange) return input.bytes();
  int64_t total = 0;
  for (const Message& message : sends) total += message.tensor.bytes();
  return total;
}

Communicator::Communicator(Group group, Device device) : group_(std::move(group)), device_(device) {}

Pending Communicator::all_reduce(Stream& stream, const Tensor& tensor, Reduction reduction, double deadline) {
  check(tensor, "tensor");
  check_reducible(tensor);
  return submit(stream, {.operation = Operation::all_reduce,
                         .input = tensor,
                         .output = tensor,
                         .reduction = reduction,
                         .deadline = deadline});
}

Pending Communicator::reduce_scatter(Stream& stream, const Tensor& input, const Tensor& output, Reduction reduction,
                                     double deadline) {
  check_pieces(output, input);
  check_reducible(input);
  return submit(stream, {.operation = Operation::reduce_scatter,
                         .input = input,
                         .output = output,
                         .reduction = reduction,
                         .deadline = deadline});
}

Pending Communicator::all_gather(Stream& stream, const Tensor& input, const Tensor& output, double deadline) {
  check_pieces(input, output);
  return submit(stream, {.operation = Operation::all_gather, .input = input, .output = output, .deadline = deadline});
}

Pending Communicator::broadcast(Stream& stream, const Tensor& tensor, int root, double deadline) {
  check(tensor, "tensor");
  check_member(root);
  return submit(
      stream,
      {.operation = Operation::broadcast, .input = tensor, .output = tensor, .root = root, .deadline = deadline});
}

Pending Communicator::all_to_all(Stream& stream, const Tensor& input, const Tensor& output, double deadline) {
  check(input, "input");
  check(output, "output");
  MEGALITH_CHECK(input.elements() == output.elements() && input.dtype == output.dtype, "all_to_all of {} {} to {} {}",
                 to_string(input.shape), megalith::name_of(input.dtype), to_string(output.shape),
                 megalith::name_of(output.dtype));
  div_exact(input.elements(), size());
  return submit(stream, {.operation = Operation::all_to_all, .input = input, .output = output, .deadline = deadline});
}

Pending Communicator::exchange(Stream& stream, std::vector<Message> sends, std::vector<Message> receives,
                               double deadline) {
  for (const auto* messages : {&sends, &receives}) {
    std::set<int> peers;
    for (const Message& message : *messages) {
      check(message.tensor, "message");
      check_member(message.peer);
      MEGALITH_CHECK(message.peer != rank(), "rank {} of group '{}' exchanges a message with itself", rank(), name());
      MEGALITH_CHECK(peers.insert(message.peer).second, "two messages for member {} in one exchange", message.peer);
    }
  }
  return submit(stream, {.operation = Operation::exchange,
                         .sends = std::move(sends),
                         .receives = std::move(receives),
                         .deadline = deadline});
}

Pending Communicator::send_receive(Stream& stream, const Message& outgoing, const Message& incoming, double deadline) {
  return exchange(stream, {outgoing}, {incoming}, deadline);
}

Pending Communicator::barrier(Stream& stream, double deadline) {
  return submit(stream, {.operation = Operation::barrier, .deadline = deadline});
}

Pending Communicator::submit(Stream& stream, Call call) {
  if (is_alone()) {
    if (call.output.data != call.input.data) copy(stream, call.input, call.output);
    return {};
  }
  MEGALITH_CHECK(stream.device() == device_, "group '{}' was given a stream of another device", name());
  if (call.deadline == kGroupDeadline) call.deadline = deadline_;
  call.sequence = call.operation == Operation::exchange ? exchanges_++ : collectives_++;
  Traffic& traffic = traffic_[static_cast<size_t>(call.operation)];
  traffic.calls += 1;
  traffic.bytes += call.bytes();
  return start(stream, std::move(call));
}

void Communicator::note_started(const Call& call, int64_t ticket) {
  log_.started(ticket);
  StatusPage::Group::Call shown{.operation = name_of(call.operation),
                                .bytes = call.bytes(),
                                .is_exchange = call.operation == Operation::exchange};
  auto& [first, second] = shown.peers;
  for (const auto* messages : {&call.sends, &call.receives}) {
    for (const Message& message : *messages) {
      const int peer = group_.ranks[static_cast<size_t>(message.peer)];
      (first == -1 || first == peer ? first : second) = peer;
    }
  }
  page_.entered(shown);
}

void Communicator::note_finished(const Call& call, int64_t ticket) {
  log_.finished(ticket);
  page_.finished(call.operation == Operation::exchange);
}

Error Communicator::failure(const Call& call, const std::string& reason, std::vector<int> ranks) const {
  const std::string operation(name_of(call.operation));
  return {ErrorKind::comm,
          fmt::format("group '{}' of {} ranks, {} #{} of {} bytes on {}: {} [last calls: {}]", name(), size(),
                      operation, call.sequence, call.bytes(), group_.describe(rank()), reason, log_.describe()),
          {.ranks = std::move(ranks), .group = name(), .call = operation}};
}

std::string Communicator::absence(const Call& call, const std::vector<int>& silent,
                                  const std::vector<int>& gone) const {
  std::string text;
  if (!silent.empty()) {
    text = fmt::format("not finished within {:.1f} s: {} did not arrive", call.deadline, group_.describe(silent));
  }
  if (!gone.empty()) text += fmt::format("{}{} is gone", text.empty() ? "" : "; ", group_.describe(gone));
  return text;
}

void Communicator::check(const Tensor& tensor, const char* what) const {
  MEGALITH_CHECK(is_alone() || tensor.device == device_, "{} given to group '{}' is in the memory of another device",
                 what, name());
  MEGALITH_CHECK(tensor.contiguous(), "{} given to group '{}' is not contiguous", what, name());
}

void Communicator::check_reducible(const Tensor& tensor) const {
  MEGALITH_CHECK(tensor.dtype != DType::i16, "group '{}' was asked to reduce i16", name());
}

void Communicator::check_member(int member) const {
  MEGALITH_CHECK(0 <= member && member < size(), "group '{}' has {} members, none is {}", name(), size(), member);
}

void Communicator::check_pieces(const Tensor& piece, const Tensor& whole) const {
  check(piece, "piece");
  check(whole, "whole tensor");
  MEGALITH_CHECK(piece.dtype == whole.dtype && piece.elements() * size() == whole.elements(),
                 "{} {} is not one of {} pieces of {} {}", megalith::name_of(piece.dtype), to_string(piece.shape),
                 size(), megalith::name_of(whole.dtype), to_string(whole.shape));
}

}  // namespace megalith::comm
