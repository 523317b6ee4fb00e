#include "comm/emulated/arrival.h"

#include <cstring>

#include "comm/host/reduce.h"

namespace megalith::comm {

namespace {

Number number_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return Number::f32;
    case DType::bf16:
      return Number::bf16;
    case DType::f64:
      return Number::f64;
    case DType::i32:
      return Number::i32;
    case DType::i64:
      return Number::i64;
    default:
      fail(ErrorKind::internal, "internal error: no reduction of {}", megalith::name_of(dtype));
  }
}

ReduceWork reduction_of(const Call& call, int members) {
  const bool scatters = call.operation == Operation::reduce_scatter;
  const bool sums = call.reduction == Reduction::sum;
  return {.number = number_of(call.input.dtype),
          .from = call.input.data,
          .to = call.output.data,
          .elements = call.output.elements(),
          .pieces = scatters ? members : 1,
          .stride = call.output.elements(),
          .largest = !sums,
          .factor = !scatters && sums ? members : 1};
}

CopyWork gathering_of(const Call& call, int members, int own) {
  const bool is_in_place = call.input.data == piece_of(call.output, members, own).data;
  return {.from = call.input.data,
          .to = call.output.data,
          .piece_bytes = call.input.bytes(),
          .pieces = members,
          .source_stride = 0,
          .period = call.input.bytes(),
          .offset = 0,
          .skipped = is_in_place ? own : -1};
}

CopyWork copy_of(const Tensor& from, const Tensor& to, int64_t offset) {
  return {.from = from.data,
          .to = to.data,
          .piece_bytes = to.bytes(),
          .pieces = 1,
          .source_stride = 0,
          .period = from.bytes(),
          .offset = offset,
          .skipped = -1};
}

Copies messages_of(Stream& stream, const EmulatedCall& emulated, Noise& noise) {
  const Call& call = emulated.call;
  MEGALITH_CHECK(std::ssize(call.receives) <= kMostCopies, "an emulated exchange receives {} messages, at most {}",
                 call.receives.size(), kMostCopies);
  Copies copies{};
  for (size_t i = 0; i < call.receives.size(); ++i) {
    const Tensor& to = call.receives[i].tensor;
    const Tensor& values = noise.of(stream, to.dtype, emulated.scales[i]);
    // Each message begins elsewhere.
    const int64_t offset = (call.sequence + 1) * 7919 * Arena::kAlignment % values.bytes();
    copies.work[copies.count++] = copy_of(values, to, offset);
  }
  return copies;
}

void carry_out(const CopyWork& copy) {
  for (int64_t piece = 0; piece < copy.pieces; ++piece) {
    if (piece == copy.skipped) continue;
    const std::byte* from = static_cast<const std::byte*>(copy.from) + piece * copy.source_stride;
    std::byte* to = static_cast<std::byte*>(copy.to) + piece * copy.piece_bytes;
    for (int64_t begin = 0; begin < copy.piece_bytes;) {
      const int64_t at = (copy.offset + begin) % copy.period;
      const int64_t bytes = std::min(copy.period - at, copy.piece_bytes - begin);
      std::memcpy(to + begin, from + at, static_cast<size_t>(bytes));
      begin += bytes;
    }
  }
}

void carry_out(const ReduceWork& work, DType dtype) {
  std::vector<const void*> summands;
  for (int64_t piece = 0; piece < work.pieces; ++piece) {
    const void* from = static_cast<const std::byte*>(work.from) + piece * work.stride * size_of(dtype);
    summands.insert(summands.end(), static_cast<size_t>(work.factor), from);
  }
  reduce(work.largest ? Reduction::max : Reduction::sum, dtype, summands, work.to, work.elements);
}

}  // namespace

Arrival arrival_of(Stream& stream, const EmulatedCall& emulated, Noise& noise) {
  const Call& call = emulated.call;
  const auto members = static_cast<int>(emulated.group.ranks.size());
  switch (call.operation) {
    case Operation::all_reduce:
    case Operation::reduce_scatter:
      return {.reduces = true, .reduction = reduction_of(call, members)};
    case Operation::all_gather:
      return {.copies = {.work = {gathering_of(call, members, emulated.group.member)}, .count = 1}};
    case Operation::all_to_all:
      return {.copies = {.work = {copy_of(call.input, call.output, 0)}, .count = 1}};
    case Operation::exchange:
      return {.copies = messages_of(stream, emulated, noise)};
    case Operation::broadcast:
    case Operation::barrier:
      return {};
  }
  return {};
}

void carry_out(const Arrival& arrival, DType dtype) {
  if (arrival.reduces) carry_out(arrival.reduction, dtype);
  for (int i = 0; i < arrival.copies.count; ++i) carry_out(arrival.copies.work[i]);
}

}  // namespace megalith::comm
