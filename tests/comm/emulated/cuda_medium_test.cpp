#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "comm/collective_cases.h"
#include "comm/emulated/emulated_world.h"
#include "comm/emulated/wires.h"
#include "comm/processes.h"
#include "core/device.h"
#include "expect_error.h"

namespace megalith::comm {
namespace {

const std::string kNoGpu = "no GPU";
constexpr int kRank = 3;
constexpr int kRanks = 32;

// One rank that is alone, in a process of its own: only children touch CUDA, it does not survive a fork.
Outcome run_emulated(const std::function<std::string(EmulatedWorld&)>& body) {
  ProcessRun run{.ranks = 1};
  run.join = [](const JoinOptions&) -> std::unique_ptr<World> {
    if (find_accelerators().empty()) throw Error(ErrorKind::user, kNoGpu);
    return std::make_unique<EmulatedWorld>(kRank, kRanks, EmulatedOptions{.wire = wire_of_eights()});
  };
  run.body = [&](World& world) { return body(dynamic_cast<EmulatedWorld&>(world)); };
  return run_processes(run).front();
}

// What a call of one group leaves in its output, on either device.
using Calling = std::function<Pending(Communicator& group, Stream& stream, Values& input, Values& output)>;
struct Case {
  std::string name;
  int64_t input_pieces = 1;
  int64_t output_pieces = 1;
  Calling call;
};

std::vector<Case> cases() {
  return {{"all_gather", 1, 4,
           [](auto& group, auto& stream, auto& in, auto& out) {
             return group.all_gather(stream, in.tensor(), out.tensor());
           }},
          {"all_gather in place", 1, 4,
           [](auto& group, auto& stream, auto& in, auto& out) {
             const Tensor own = piece_of(out.tensor(), 4, kRank);
             copy(stream, in.tensor(), own);
             return group.all_gather(stream, own, out.tensor());
           }},
          {"reduce_scatter", 4, 1,
           [](auto& group, auto& stream, auto& in, auto& out) {
             return group.reduce_scatter(stream, in.tensor(), out.tensor());
           }},
          {"reduce_scatter, largest", 4, 1,
           [](auto& group, auto& stream, auto& in, auto& out) {
             return group.reduce_scatter(stream, in.tensor(), out.tensor(), Reduction::max);
           }},
          {"all_reduce", 1, 1,
           [](auto& group, auto& stream, auto& in, auto& out) {
             copy(stream, in.tensor(), out.tensor());
             return group.all_reduce(stream, out.tensor());
           }},
          {"all_reduce, largest", 1, 1,
           [](auto& group, auto& stream, auto& in, auto& out) {
             copy(stream, in.tensor(), out.tensor());
             return group.all_reduce(stream, out.tensor(), Reduction::max);
           }},
          {"all_to_all", 4, 4,
           [](auto& group, auto& stream, auto& in, auto& out) {
             return group.all_to_all(stream, in.tensor(), out.tensor());
           }},
          {"broadcast", 1, 1, [](auto& group, auto& stream, auto& in, auto& out) {
             copy(stream, in.tensor(), out.tensor());
             return group.broadcast(stream, out.tensor(), 0);
           }}};
}

Case message() {
  return {"exchange", 1, 1, [](auto& group, auto& stream, auto& in, auto& out) {
            return group.exchange(stream, {{0, in.tensor()}}, {{1, out.tensor()}});
          }};
}

std::vector<std::byte> output_of(World& world, const Case& one, DType dtype, int64_t elements) {
  const auto group = world.make_group(one.name, {0, 1, 2, 3});
  TestStream stream(world.device());
  Values input(dtype, elements * one.input_pieces, world.device());
  for (int64_t i = 0; i < elements * one.input_pieces; ++i) input.set(i, value_of(kRank, i));
  input.upload(stream);
  Values output(dtype, elements * one.output_pieces, world.device());
  one.call(*group, stream, input, output).wait(stream);
  output.download(stream);
  return output.bytes();
}

TEST(EmulatedOnGpu, CallsBringTheSameBytesAsOnTheCpu) {
  const Outcome outcome = run_emulated([](EmulatedWorld& world) {
    WireClock clock;
    EmulatedWorld on_cpu(kRank, kRanks, {.wire = world.wire()}, clock);
    std::string wrong;
    const auto compare = [&](const Case& one, DType dtype, int64_t elements) {
      if (output_of(world, one, dtype, elements) != output_of(on_cpu, one, dtype, elements))
        wrong += fmt::format("{} of {} {}; ", one.name, elements, megalith::name_of(dtype));
    };
    for (const int64_t elements : {0L, 1L, 3L, 7L, 64L, 1001L, 300000L}) {
      for (const Case& one : cases()) {
        for (const DType dtype : kAllTypes) compare(one, dtype, elements);
      }
      for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) compare(message(), dtype, elements);
    }
    return wrong;
  });
  if (outcome.text == kNoGpu) GTEST_SKIP() << kNoGpu;
  EXPECT_EQ(outcome.text, "");
}

double seconds_of(Stream& stream, int calls, const std::function<void()>& call) {
  call();
  stream.wait();
  StreamMark begin;
  StreamMark end;
  begin.record(stream);
  for (int i = 0; i < calls; ++i) call();
  end.record(stream);
  stream.wait();
  return StreamMark::seconds_between(begin, end) / calls;
}

// 1 KB to 1 GB.
TEST(EmulatedOnGpu, CallsLastAsLongAsTheWireSays) {
  const Outcome outcome = run_emulated([](EmulatedWorld& world) {
    TestStream test_stream(Device::cuda);
    Stream& stream = test_stream;
    Arena memory("test", Device::cuda, int64_t{2} << 30);
    std::string wrong;
    const auto tensor = world.make_group("tensor", {0, 1, 2, 3});
    const auto data = world.make_group("data", {3, 11, 19, 27});
    for (Communicator* group : {tensor.get(), data.get()}) {
      for (int64_t bytes = 1 << 10; bytes <= 1 << 30; bytes *= 4) {
        const ArenaScope scope(memory);
        const Tensor whole = memory.allocate("whole", DType::bf16, {bytes / 2});
        const Tensor piece = memory.allocate("piece", DType::bf16, {bytes / 8});
        const auto check = [&](Operation operation, const Tensor& put_in, const std::function<Pending()>& call) {
          const Call asked{.operation = operation, .input = put_in};
          const double wanted = seconds_alone(world.wire(), cost_of(world.wire(), group->group(), asked));
          const int calls = std::clamp(static_cast<int>(0.05 / wanted), 2, 100);
          const double found = seconds_of(stream, calls, [&] { call().wait(stream); });
          if (std::abs(found - wanted) < std::max(5e-6, 0.03 * wanted)) return;
          wrong += fmt::format("{} of {} bytes in group {}: {:.1f} us, not {:.1f}; ", name_of(operation),
                               put_in.bytes(), group->name(), found * 1e6, wanted * 1e6);
        };
        check(Operation::all_gather, piece, [&] { return group->all_gather(stream, piece, whole); });
        check(Operation::reduce_scatter, whole, [&] { return group->reduce_scatter(stream, whole, piece); });
        check(Operation::all_reduce, whole, [&] { return group->all_reduce(stream, whole); });
      }
    }
    return wrong;
  });
  if (outcome.text == kNoGpu) GTEST_SKIP() << kNoGpu;
  EXPECT_EQ(outcome.text, "");
}

TEST(EmulatedOnGpu, CallsThatOverlapShareTheirLink) {
  const Outcome outcome = run_emulated([](EmulatedWorld& world) {
    TestStream test_stream(Device::cuda);
    Stream& stream = test_stream;
    constexpr int64_t kElements = int64_t{32} << 20;
    Arena memory("test", Device::cuda, 2 * Arena::footprint(DType::bf16, 5 * kElements));
    std::array<Tensor, 2> pieces;
    std::array<Tensor, 2> wholes;
    std::array<std::unique_ptr<Communicator>, 2> groups;
    for (size_t i = 0; i < 2; ++i) {
      pieces[i] = memory.allocate("piece", DType::bf16, {kElements});
      wholes[i] = memory.allocate("whole", DType::bf16, {4 * kElements});
      groups[i] = world.make_group(fmt::format("tensor {}", i), {0, 1, 2, 3});
    }
    const auto call = [&](size_t i) { return groups[i]->all_gather(stream, pieces[i], wholes[i]); };
    const double alone = seconds_of(stream, 10, [&] { call(0).wait(stream); });
    const double both = seconds_of(stream, 10, [&] {
      const Pending first = call(0);
      call(1).wait(stream);
      first.wait(stream);
    });
    return fmt::format("{:.3f}", both / alone);
  });
  if (outcome.text == kNoGpu) GTEST_SKIP() << kNoGpu;
  EXPECT_NEAR(std::stod(outcome.text), 2.0, 0.06);
}

TEST(EmulatedOnGpu, MessagesArriveWhenTheyAreSaidTo) {
  const Outcome outcome = run_emulated([](EmulatedWorld& world) {
    TestStream test_stream(Device::cuda);
    Stream& stream = test_stream;
    Values values(DType::f32, 1000, Device::cuda);
    const auto group = world.make_group("pipeline", {3, 11});
    StreamMark begin;
    StreamMark end;
    // What follows is queued behind it: the launches take no time of the GPU's.
    world.set_arrivals(stream, {2e-3});
    group->exchange(stream, {}, {{1, values.tensor()}}).wait(stream);
    begin.record(stream);
    world.set_arrivals(stream, {2e-3, 3e-3});
    for (int i = 0; i < 2; ++i) group->exchange(stream, {}, {{1, values.tensor()}}).wait(stream);
    end.record(stream);
    stream.wait();
    return fmt::format("{:.6f}", StreamMark::seconds_between(begin, end));
  });
  if (outcome.text == kNoGpu) GTEST_SKIP() << kNoGpu;
  EXPECT_NEAR(std::stod(outcome.text), 3e-3, 20e-6);
}

TEST(EmulatedOnGpu, InstantCallsTakeNoLongerThanMovingMemory) {
  const Outcome outcome = run_emulated([](EmulatedWorld& world) {
    TestStream test_stream(Device::cuda);
    Stream& stream = test_stream;
    Values values(DType::f32, 1000, Device::cuda);
    const auto group = world.make_group("tensor", {0, 1, 2, 3});
    world.set_instant({"tensor"});
    const double seconds = seconds_of(stream, 100, [&] { group->all_reduce(stream, values.tensor()).wait(stream); });
    return fmt::format("{:.3f}", seconds * 1e6);
  });
  if (outcome.text == kNoGpu) GTEST_SKIP() << kNoGpu;
  EXPECT_LT(std::stod(outcome.text), 9.0);  // the wire's latency is 10 us
}

}  // namespace
}  // namespace megalith::comm
