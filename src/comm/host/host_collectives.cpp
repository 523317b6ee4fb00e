#include "comm/host/host_collectives.h"

#include <algorithm>
#include <cstring>

#include "comm/host/reduce.h"
#include "core/clock.h"

namespace megalith::comm {

namespace {
constexpr int64_t kScratchBytes = 4 << 20;

// A tag holds what the letters of a call have in common, and a fingerprint of what they are: ranks that disagree about
// a call miss each other and run into the deadline instead of reading each other's bytes as something else.
constexpr uint64_t make_tag(uint64_t group, bool numbered, uint64_t number, uint64_t round, uint64_t fingerprint) {
  return (group & 0xfffff) << 44 | static_cast<uint64_t>(numbered) << 43 | (number & 0x7ffff) << 24 |
         (round & 0xff) << 16 | (fingerprint & 0xffff);
}

constexpr uint64_t fingerprint_of(Operation operation, DType dtype, int64_t bytes) {
  const auto what = static_cast<uint64_t>(operation) * 8 + static_cast<uint64_t>(dtype);
  return ((static_cast<uint64_t>(bytes) * 64 + what + 1) * 0x9e3779b97f4a7c15ULL) >> 48;
}

std::byte* bytes_of(const Tensor& tensor) {
  return static_cast<std::byte*>(tensor.data);
}
}  // namespace

HostCollectives::HostCollectives(const Group& group, uint32_t id, std::shared_ptr<Transport> transport)
    : group_(group),
      id_(id),
      transport_(std::move(transport)),
      sent_(group.ranks.size()),
      received_(group.ranks.size()) {}

void HostCollectives::run(const Call& call) {
  round_ = 0;
  ends_ = monotonic_seconds() + call.deadline;
  switch (call.operation) {
    case Operation::all_reduce:
      return all_reduce(call);
    case Operation::reduce_scatter:
      return reduce_scatter(call);
    case Operation::all_gather:
      return all_gather(call);
    case Operation::broadcast:
      return broadcast(call);
    case Operation::all_to_all:
      return all_to_all(call);
    case Operation::exchange:
      return exchange(call);
    case Operation::barrier:
      return barrier(call);
  }
}

void HostCollectives::all_reduce(const Call& call) {
  const std::vector<Slice> slices = slices_of(call.input);
  const Slice own = slices[static_cast<size_t>(group_.member)];
  scatter_reduced(call, slices, bytes_of(call.output) + own.begin * size_of(call.input.dtype));
  gather_slices(call, call.output, slices);
}

void HostCollectives::reduce_scatter(const Call& call) {
  scatter_reduced(call, slices_of(call.input), bytes_of(call.output));
}

void HostCollectives::all_gather(const Call& call) {
  const Tensor own = piece_of(call.output, size(), group_.member);
  if (own.data != call.input.data) std::memcpy(own.data, call.input.data, static_cast<size_t>(own.bytes()));
  gather_slices(call, call.output, slices_of(call.output));
}

void HostCollectives::broadcast(const Call& call) {
  if (call.input.bytes() == 0) return;
  if (group_.member != call.root) {
    const Letter from_root = letter(call, call.root, call.output.data, call.output.bytes());
    return trade({}, {&from_root, 1});
  }
  std::vector<Letter> sends;
  for (const int other : others()) sends.push_back(letter(call, other, call.input.data, call.input.bytes()));
  trade(sends, {});
}

void HostCollectives::all_to_all(const Call& call) {
  if (call.input.bytes() == 0) return;
  std::vector<Letter> sends;
  std::vector<Letter> receives;
  for (const int other : others()) {
    const Tensor outgoing = piece_of(call.input, size(), other);
    const Tensor incoming = piece_of(call.output, size(), other);
    sends.push_back(letter(call, other, outgoing.data, outgoing.bytes()));
    receives.push_back(letter(call, other, incoming.data, incoming.bytes()));
  }
  const Tensor kept = piece_of(call.input, size(), group_.member);
  std::memcpy(piece_of(call.output, size(), group_.member).data, kept.data, static_cast<size_t>(kept.bytes()));
  trade(sends, receives);
}

void HostCollectives::exchange(const Call& call) {
  std::vector<Letter> sends;
  std::vector<Letter> receives;
  for (const Message& message : call.sends) {
    sends.push_back(numbered_letter(message, sent_[static_cast<size_t>(message.peer)]++));
  }
  for (const Message& message : call.receives) {
    receives.push_back(numbered_letter(message, received_[static_cast<size_t>(message.peer)]++));
  }
  trade(sends, receives);
}

void HostCollectives::barrier(const Call& call) {
  std::vector<Letter> letters;
  for (const int other : others()) letters.push_back(letter(call, other, nullptr, 0));
  trade(letters, letters);
}

// In rounds, so that what the other members send fits into the scratch.
void HostCollectives::scatter_reduced(const Call& call, std::span<const Slice> slices, std::byte* output) {
  const int64_t width = size_of(call.input.dtype);
  const int64_t step = std::max<int64_t>(1, kScratchBytes / width / (size() - 1));
  int64_t longest = 0;
  for (const Slice& slice : slices) longest = std::max(longest, slice.end - slice.begin);
  const auto elements_in = [&](const Slice& slice, int64_t offset) {
    return std::clamp<int64_t>(slice.end - slice.begin - offset, 0, step);
  };

  scratch_.resize(static_cast<size_t>(std::min(step, longest) * (size() - 1) * width));
  for (int64_t offset = 0; offset < longest; offset += step) {
    const Slice& own = slices[static_cast<size_t>(group_.member)];
    const int64_t own_bytes = elements_in(own, offset) * width;
    std::vector<const void*> pieces(slices.size());
    pieces[static_cast<size_t>(group_.member)] = bytes_of(call.input) + (own.begin + offset) * width;
    std::vector<Letter> sends;
    std::vector<Letter> receives;
    for (const int other : others()) {
      const Slice& slice = slices[static_cast<size_t>(other)];
      const int64_t bytes = elements_in(slice, offset) * width;
      if (bytes > 0) sends.push_back(letter(call, other, bytes_of(call.input) + (slice.begin + offset) * width, bytes));
      if (own_bytes == 0) continue;
      std::byte* place = scratch_.data() + static_cast<int64_t>(receives.size()) * own_bytes;
      receives.push_back(letter(call, other, place, own_bytes));
      pieces[static_cast<size_t>(other)] = place;
    }
    trade(sends, receives);
    reduce(call.reduction, call.input.dtype, pieces, output + offset * width, own_bytes / width);
  }
}

void HostCollectives::gather_slices(const Call& call, const Tensor& tensor, std::span<const Slice> slices) {
  const int64_t width = size_of(tensor.dtype);
  const auto slice_letter = [&](int with, int whose) {
    const Slice& slice = slices[static_cast<size_t>(whose)];
    return letter(call, with, bytes_of(tensor) + slice.begin * width, (slice.end - slice.begin) * width);
  };
  std::vector<Letter> sends;
  std::vector<Letter> receives;
  for (const int other : others()) {
    sends.push_back(slice_letter(other, group_.member));
    receives.push_back(slice_letter(other, other));
  }
  const auto empty = [](const Letter& each) { return each.bytes == 0; };
  std::erase_if(sends, empty);
  std::erase_if(receives, empty);
  trade(sends, receives);
}

std::vector<HostCollectives::Slice> HostCollectives::slices_of(const Tensor& tensor) const {
  const int64_t elements = tensor.elements();
  std::vector<Slice> slices(group_.ranks.size());
  for (int i = 0; i < size(); ++i) {
    slices[static_cast<size_t>(i)] = {elements * i / size(), elements * (i + 1) / size()};
  }
  return slices;
}

// Beginning behind oneself, so that not everybody writes to member 0 first.
std::vector<int> HostCollectives::others() const {
  std::vector<int> members;
  for (int i = 1; i < size(); ++i) members.push_back((group_.member + i) % size());
  return members;
}

Letter HostCollectives::letter(const Call& call, int member, void* data, int64_t bytes) const {
  const uint64_t fingerprint = fingerprint_of(call.operation, call.input.dtype, bytes);
  return {.peer = group_.ranks[static_cast<size_t>(member)],
          .tag = make_tag(id_, false, static_cast<uint64_t>(call.sequence), round_, fingerprint),
          .data = data,
          .bytes = bytes};
}

Letter HostCollectives::numbered_letter(const Message& message, int64_t number) const {
  const Tensor& tensor = message.tensor;
  const uint64_t fingerprint = fingerprint_of(Operation::exchange, tensor.dtype, tensor.bytes());
  return {.peer = group_.ranks[static_cast<size_t>(message.peer)],
          .tag = make_tag(id_, true, static_cast<uint64_t>(number), 0, fingerprint),
          .data = tensor.data,
          .bytes = tensor.bytes()};
}

void HostCollectives::trade(std::span<const Letter> sends, std::span<const Letter> receives) {
  round_ += 1;
  if (sends.empty() && receives.empty()) return;
  transport_->exchange(sends, receives, std::max(0.0, ends_ - monotonic_seconds()));
}

}  // namespace megalith::comm
