#include "comm/bench_comm.h"

#include <algorithm>
#include <cmath>

#include "core/arena.h"
#include "core/clock.h"

namespace megalith::comm {

namespace {
constexpr int kMostCalls = 1000;

class Bench {
 public:
  Bench(Communicator& group, Stream& stream, const CommBench& bench)
      : group_(group),
        stream_(stream),
        bench_(bench),
        arena_("comm bench", group.device(), capacity(group, bench)),
        verdict_(arena_.allocate("slowest member", DType::f64, {1})) {}

  std::vector<CommTiming> run() {
    std::vector<CommTiming> timings;
    for (const Operation operation :
         {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather, Operation::broadcast,
          Operation::all_to_all, Operation::exchange, Operation::barrier}) {
      for (int64_t bytes = bench_.least_bytes; bytes <= bench_.most_bytes; bytes *= bench_.factor) {
        timings.push_back(measure(operation, bytes));
        if (operation == Operation::barrier) break;
      }
    }
    return timings;
  }

 private:
  // As many for each member.
  static int64_t elements_of(int64_t bytes, const Communicator& group, const CommBench& bench) {
    return round_up(std::max<int64_t>(1, bytes / size_of(bench.dtype)), group.size());
  }

  static int64_t capacity(const Communicator& group, const CommBench& bench) {
    const int64_t elements = elements_of(bench.most_bytes, group, bench);
    return Arena::footprint(bench.dtype, elements) + Arena::footprint(bench.dtype, elements * group.size()) +
           Arena::footprint(DType::f64, 1);
  }

  CommTiming measure(Operation operation, int64_t bytes) {
    const ArenaScope scope(arena_);
    const int64_t members = group_.size();
    const int64_t elements = elements_of(bytes, group_, bench_);
    const Tensor input = arena_.allocate("input", bench_.dtype, {elements});
    const bool gathers = operation == Operation::all_gather;
    const Tensor output = arena_.allocate("output", bench_.dtype, {gathers ? elements * members : elements});

    const double once = slowest(timed(operation, input, output, 1));
    const int calls = std::clamp(static_cast<int>(bench_.seconds / std::max(once, 1e-9)), 1, kMostCalls);
    const double seconds = slowest(timed(operation, input, output, calls)) / calls;
    const int64_t put_in = operation == Operation::barrier ? 0 : input.bytes();
    const double carried = wire_bytes(operation, put_in, group_.size());
    return {.operation = operation,
            .bytes = put_in,
            .seconds = seconds,
            .bytes_per_second = seconds > 0.0 ? carried / seconds : 0.0};
  }

  double timed(Operation operation, const Tensor& input, const Tensor& output, int calls) {
    group_.barrier(stream_).wait(stream_);
    stream_.wait();
    const double begin = monotonic_seconds();
    for (int i = 0; i < calls; ++i) call(operation, input, output).wait(stream_);
    stream_.wait();
    return monotonic_seconds() - begin;
  }

  Pending call(Operation operation, const Tensor& input, const Tensor& output) {
    const int members = group_.size();
    switch (operation) {
      case Operation::all_reduce:
        return group_.all_reduce(stream_, input);
      case Operation::reduce_scatter:
        return group_.reduce_scatter(stream_, input, piece_of(output, members, 0));
      case Operation::all_gather:
        return group_.all_gather(stream_, input, output);
      case Operation::broadcast:
        return group_.broadcast(stream_, input, 0);
      case Operation::all_to_all:
        return group_.all_to_all(stream_, input, output);
      case Operation::exchange:
        if (members == 1) return {};
        return group_.send_receive(stream_, {(group_.rank() + 1) % members, input},
                                   {(group_.rank() + members - 1) % members, output});
      case Operation::barrier:
        return group_.barrier(stream_);
    }
    return {};
  }

  // The same number on every member, so that all of them make the same calls.
  double slowest(double seconds) {
    copy(stream_, Tensor(&seconds, DType::f64, {1}), verdict_);
    group_.all_reduce(stream_, verdict_, Reduction::max).wait(stream_);
    copy(stream_, verdict_, Tensor(&seconds, DType::f64, {1}));
    stream_.wait();
    return seconds;
  }

  Communicator& group_;
  Stream& stream_;
  const CommBench& bench_;
  Arena arena_;
  Tensor verdict_;
};
}  // namespace

std::vector<CommTiming> bench_comm(Communicator& group, Stream& stream, const CommBench& bench) {
  if (bench.least_bytes < 1 || bench.factor < 2)
    user_error("sizes of a bench begin at 1 byte and grow at least twofold");
  return Bench(group, stream, bench).run();
}

std::string describe(const std::vector<CommTiming>& timings, int members) {
  std::string table = fmt::format("{} ranks\n{:<16}{:>14}{:>14}{:>14}\n", members, "operation", "bytes", "us", "GB/s");
  for (const CommTiming& timing : timings) {
    table += fmt::format("{:<16}{:>14}{:>14.1f}{:>14.3f}\n", name_of(timing.operation), timing.bytes,
                         timing.seconds * 1e6, timing.bytes_per_second * 1e-9);
  }
  return table;
}

std::string to_csv(const std::vector<CommTiming>& timings, int members, int machines) {
  std::string text = "ranks,machines,operation,bytes,microseconds,gigabytes_per_second\n";
  for (const CommTiming& timing : timings) {
    text += fmt::format("{},{},{},{},{:.3f},{:.3f}\n", members, machines, name_of(timing.operation), timing.bytes,
                        timing.seconds * 1e6, timing.bytes_per_second * 1e-9);
  }
  return text;
}

}  // namespace megalith::comm
