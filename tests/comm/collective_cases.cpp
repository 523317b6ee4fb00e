#include "comm/collective_cases.h"

#include <algorithm>
#include <functional>

namespace megalith::comm {

namespace {
template <class Body>
void with_type(DType dtype, Body&& body) {
  if (dtype == DType::i32) return body(int32_t{});
  if (dtype == DType::i64) return body(int64_t{});
  dispatch_float(dtype, [&](auto type) { body(typename decltype(type)::type{}); });
}

// The tensors of one group's tests.
class Case {
 public:
  Case(Communicator& group, DType dtype) : stream(group.device()), group_(group), dtype_(dtype) {}

  Values empty(int64_t elements) const { return Values(dtype_, elements, group_.device()); }
  Values filled(int64_t elements, const std::function<double(int64_t)>& value) {
    Values values = empty(elements);
    for (int64_t i = 0; i < elements; ++i) values.set(i, value(i));
    values.upload(stream);
    return values;
  }
  void expect(Values& found, int64_t elements, const char* what, const std::function<double(int64_t)>& wanted) {
    found.download(stream);
    for (int64_t i = 0; i < elements; ++i) {
      if (found.get(i) == wanted(i)) continue;
      fail(ErrorKind::internal, "{}: element {} of {} is {}, not {}", what, i, elements, found.get(i), wanted(i));
    }
  }

  TestStream stream;

 private:
  Communicator& group_;
  DType dtype_;
};

double over_ranks(int ranks, int64_t index, bool sum) {
  double result = value_of(0, index);
  for (int rank = 1; rank < ranks; ++rank) {
    result = sum ? result + value_of(rank, index) : std::max(result, value_of(rank, index));
  }
  return result;
}

}  // namespace

Values::Values(DType dtype, int64_t elements, Device device)
    : dtype_(dtype), bytes_(static_cast<size_t>(elements * size_of(dtype))) {
  if (device == Device::cpu) return;
  arena_ = std::make_unique<Arena>("values", device, std::max(Arena::kAlignment, Arena::footprint(dtype, elements)));
  device_ = arena_->allocate("values", dtype, {elements});
}

void Values::upload(Stream& stream) {
  if (device_ && !bytes_.empty()) copy(stream, host(), *device_);
  stream.wait();
}

void Values::download(Stream& stream) {
  if (device_ && !bytes_.empty()) copy(stream, *device_, host());
  stream.wait();
}

void Values::set(int64_t index, double value) {
  with_type(dtype_, [&](auto type) {
    using T = decltype(type);
    if constexpr (std::is_same_v<T, bfloat16>) {
      host().as<T>()[index] = T(static_cast<float>(value));
    } else {
      host().as<T>()[index] = static_cast<T>(value);
    }
  });
}

double Values::get(int64_t index) {
  double value = 0.0;
  with_type(dtype_, [&](auto type) { value = widen(host().as<decltype(type)>()[index]); });
  return value;
}

void check_reductions(Communicator& group, DType dtype, int64_t elements) {
  Case test(group, dtype);
  const int n = group.size();
  for (const Reduction reduction : {Reduction::sum, Reduction::max}) {
    const auto wanted = [&](int64_t i) { return over_ranks(n, i, reduction == Reduction::sum); };
    const auto own = [&](int64_t i) { return value_of(group.rank(), i); };
    Values all = test.filled(elements, own);
    group.all_reduce(test.stream, all.tensor(), reduction).wait(test.stream);
    test.expect(all, elements, "all_reduce", wanted);

    Values input = test.filled(elements * n, own);
    Values piece = test.empty(elements);
    group.reduce_scatter(test.stream, input.tensor(), piece.tensor(), reduction).wait(test.stream);
    const int64_t begin = elements * group.rank();
    test.expect(piece, elements, "reduce_scatter", [&](int64_t i) { return wanted(begin + i); });
    group.reduce_scatter(test.stream, input.tensor(), piece_of(input.tensor(), n, group.rank()), reduction)
        .wait(test.stream);
    test.expect(input, elements * n, "reduce_scatter in place",
                [&](int64_t i) { return i >= begin && i < begin + elements ? wanted(i) : own(i); });
  }
}

void check_collectives(Communicator& group, DType dtype, int64_t elements) {
  Case test(group, dtype);
  const int n = group.size();
  const int rank = group.rank();
  check_reductions(group, dtype, elements);

  const auto gathered = [&](int64_t i) { return value_of(static_cast<int>(i / elements), i % elements); };
  Values own = test.filled(elements, [&](int64_t i) { return value_of(rank, i); });
  Values all = test.empty(elements * n);
  group.all_gather(test.stream, own.tensor(), all.tensor()).wait(test.stream);
  test.expect(all, elements * n, "all_gather", gathered);
  Values placed = test.filled(elements * n, [&](int64_t i) { return i / elements == rank ? gathered(i) : 0.0; });
  group.all_gather(test.stream, piece_of(placed.tensor(), n, rank), placed.tensor()).wait(test.stream);
  test.expect(placed, elements * n, "all_gather in place", gathered);

  for (int root = 0; root < n; ++root) {
    Values sent = test.filled(elements, [&](int64_t i) { return value_of(rank, i); });
    group.broadcast(test.stream, sent.tensor(), root).wait(test.stream);
    test.expect(sent, elements, "broadcast", [&](int64_t i) { return value_of(root, i); });
  }

  Values outgoing = test.filled(elements * n, [&](int64_t i) { return value_of(rank, i); });
  Values incoming = test.empty(elements * n);
  group.all_to_all(test.stream, outgoing.tensor(), incoming.tensor()).wait(test.stream);
  test.expect(incoming, elements * n, "all_to_all",
              [&](int64_t i) { return value_of(static_cast<int>(i / elements), rank * elements + i % elements); });
  group.barrier(test.stream).wait(test.stream);
}

void check_exchanges(Communicator& group, DType dtype, int64_t elements) {
  Case test(group, dtype);
  const int n = group.size();
  if (n == 1) return;
  const int next = (group.rank() + 1) % n;
  const int previous = (group.rank() + n - 1) % n;
  Values own = test.filled(elements, [&](int64_t i) { return value_of(group.rank(), i); });
  Values other = test.empty(elements);
  group.send_receive(test.stream, {next, own.tensor()}, {previous, other.tensor()}).wait(test.stream);
  test.expect(other, elements, "send_receive", [&](int64_t i) { return value_of(previous, i); });

  if (group.rank() == 0) {
    for (int to = 1; to < n; ++to) group.exchange(test.stream, {{to, own.tensor()}}, {}).wait(test.stream);
  } else {
    Values from_first = test.empty(elements);
    group.exchange(test.stream, {}, {{0, from_first.tensor()}}).wait(test.stream);
    test.expect(from_first, elements, "receive", [&](int64_t i) { return value_of(0, i); });
  }
}

std::vector<std::byte> sum_of_awkward_values(Communicator& group, DType dtype, int64_t elements) {
  Case test(group, dtype);
  Values values = test.filled(elements, [&](int64_t i) {
    return std::sin(static_cast<double>(i * 7 + group.rank())) * std::pow(10.0, (i + group.rank()) % 7 - 3);
  });
  group.all_reduce(test.stream, values.tensor()).wait(test.stream);
  values.download(test.stream);
  return values.bytes();
}

void check_world(World& world) {
  const auto everyone = world.make_world_group();
  for (const DType dtype : kAllTypes) {
    for (const int64_t elements : kAllSizes) {
      check_collectives(*everyone, dtype, elements);
      check_exchanges(*everyone, dtype, elements);
    }
  }
  // Larger than the scratch of a round.
  check_reductions(*everyone, DType::f32, 1'100'003 / std::max(1, world.size() - 1));

  // Reversed, so that members and ranks differ; and every second rank.
  std::vector<int> reversed;
  std::vector<int> alternate;
  for (int rank = world.size() - 1; rank >= 0; --rank) reversed.push_back(rank);
  for (int rank = world.rank() % 2; rank < world.size(); rank += 2) alternate.push_back(rank);
  const auto backwards = world.make_group("backwards", reversed);
  const auto half = world.make_group("half", alternate);
  check_collectives(*backwards, DType::f32, 13);
  check_collectives(*half, DType::bf16, 13);
  check_exchanges(*backwards, DType::i64, 5);
}

}  // namespace megalith::comm
