#include "comm/emulated/emulated_world.h"

#include <gtest/gtest.h>

#include <cmath>

#include "comm/collective_cases.h"
#include "comm/emulated/wires.h"
#include "expect_error.h"

namespace megalith::comm {
namespace {

constexpr int64_t kElements = 12;

class EmulatedTest : public testing::Test {
 protected:
  static Values counted(DType dtype, int64_t elements) {
    Values values(dtype, elements);
    for (int64_t i = 0; i < elements; ++i) values.set(i, value_of(3, i));
    return values;
  }

  CpuStream stream_;
  WireClock clock_;
  EmulatedWorld world_{3, 32, {.wire = wire_of_eights()}, clock_};
};

TEST_F(EmulatedTest, GathersFromEachWhatThisRankGives) {
  const auto group = world_.make_group("tensor", {0, 1, 2, 3});
  for (const DType dtype : kAllTypes) {
    Values input = counted(dtype, kElements);
    Values output(dtype, 4 * kElements);
    group->all_gather(stream_, input.tensor(), output.tensor()).wait(stream_);
    for (int64_t i = 0; i < 4 * kElements; ++i) EXPECT_EQ(output.get(i), value_of(3, i % kElements));
    // In place.
    Values whole(dtype, 4 * kElements);
    for (int64_t i = 0; i < kElements; ++i) whole.set(3 * kElements + i, value_of(3, i));
    group->all_gather(stream_, piece_of(whole.tensor(), 4, 3), whole.tensor()).wait(stream_);
    EXPECT_EQ(whole.bytes(), output.bytes());
  }
}

TEST_F(EmulatedTest, EveryMemberAddsWhatThisRankHasPutIn) {
  const auto group = world_.make_group("tensor", {0, 1, 2, 3});
  for (const DType dtype : kAllTypes) {
    Values sum = counted(dtype, kElements);
    group->all_reduce(stream_, sum.tensor()).wait(stream_);
    for (int64_t i = 0; i < kElements; ++i) EXPECT_EQ(sum.get(i), 4 * value_of(3, i));
    Values largest = counted(dtype, kElements);
    group->all_reduce(stream_, largest.tensor(), Reduction::max).wait(stream_);
    for (int64_t i = 0; i < kElements; ++i) EXPECT_EQ(largest.get(i), value_of(3, i));
    // What this rank's pieces hold for the others is what theirs hold for it.
    Values pieces = counted(dtype, 4 * kElements);
    Values own(dtype, kElements);
    group->reduce_scatter(stream_, pieces.tensor(), own.tensor()).wait(stream_);
    for (int64_t i = 0; i < kElements; ++i) {
      double wanted = 0.0;
      for (int64_t member = 0; member < 4; ++member) wanted += value_of(3, member * kElements + i);
      EXPECT_EQ(own.get(i), wanted);
    }
    group->reduce_scatter(stream_, pieces.tensor(), piece_of(pieces.tensor(), 4, 3)).wait(stream_);
    for (int64_t i = 0; i < kElements; ++i) EXPECT_EQ(pieces.get(3 * kElements + i), own.get(i));
  }
}

TEST_F(EmulatedTest, ABroadcastBringsWhatIsThere) {
  const auto group = world_.make_world_group();
  Values values = counted(DType::i32, kElements);
  group->broadcast(stream_, values.tensor(), 0).wait(stream_);
  for (int64_t i = 0; i < kElements; ++i) EXPECT_EQ(values.get(i), value_of(3, i));
  group->barrier(stream_).wait(stream_);
}

TEST_F(EmulatedTest, MessagesBringNormalValuesOfAGivenScale) {
  WireClock clock;
  EmulatedWorld world(
      3, 32, {.wire = wire_of_eights(), .message_scale = [](const Group&, int peer) { return peer == 0 ? 0.5 : 3.0; }},
      clock);
  const auto group = world.make_group("pipeline", {0, 3, 6});
  constexpr int64_t kMany = 20000;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    Values sent = counted(dtype, kMany);
    Values before(dtype, kMany);
    Values behind(dtype, kMany);
    group->exchange(stream_, {{2, sent.tensor()}}, {{0, before.tensor()}, {2, behind.tensor()}}).wait(stream_);
    for (const auto& [values, scale] : {std::pair{&before, 0.5}, std::pair{&behind, 3.0}}) {
      double sum = 0.0;
      double squares = 0.0;
      for (int64_t i = 0; i < kMany; ++i) {
        sum += values->get(i);
        squares += values->get(i) * values->get(i);
      }
      EXPECT_NEAR(sum / kMany, 0.0, scale * 0.03);
      EXPECT_NEAR(std::sqrt(squares / kMany), scale, scale * 0.03);
    }
    Values next(dtype, kMany);
    group->exchange(stream_, {}, {{0, next.tensor()}}).wait(stream_);
    EXPECT_NE(next.bytes(), before.bytes());
  }
}

TEST_F(EmulatedTest, CallsLastAsLongAsTheWireSaysWhenTheyAreWaitedFor) {
  const auto group = world_.make_group("tensor", {0, 1, 2, 3});
  Values input(DType::f32, 25 << 10);
  Values output(DType::f32, 100 << 10);
  const Pending pending = group->all_gather(stream_, input.tensor(), output.tensor());
  EXPECT_EQ(clock_.now(), 0.0);
  pending.wait(stream_);
  const double once = 10e-6 + 300 * 1024 / 300e9;
  EXPECT_NEAR(clock_.now(), once, 1e-12);
  // What is computed meanwhile hides it.
  const Pending hidden = group->all_gather(stream_, input.tensor(), output.tensor());
  clock_.advance(1.0);
  hidden.wait(stream_);
  EXPECT_NEAR(clock_.now(), once + 1.0, 1e-12);
}

TEST_F(EmulatedTest, GroupsOverlapAndShareTheirLinks) {
  const auto tensor = world_.make_group("tensor", {0, 1, 2, 3});
  const auto pipeline = world_.make_group("pipeline", {3, 7});
  Values input(DType::f32, 25 << 10);
  Values output(DType::f32, 100 << 10);
  const double moving = 300 * 1024 / 300e9;
  const Pending first = tensor->all_gather(stream_, input.tensor(), output.tensor());
  const Pending second = pipeline->exchange(stream_, {{1, Tensor(output.tensor().data, DType::f32, {75 << 10})}}, {});
  first.wait(stream_);
  EXPECT_NEAR(clock_.now(), 10e-6 + 2 * moving, 1e-12);
  second.wait(stream_);
  EXPECT_NEAR(clock_.now(), 10e-6 + 2 * moving, 1e-12);
}

TEST_F(EmulatedTest, InstantGroupsTakeNoTime) {
  const auto tensor = world_.make_group("tensor", {0, 1, 2, 3});
  const auto data = world_.make_group("replicas", {3, 11});
  Values values = counted(DType::f32, kElements);
  world_.set_instant({"tensor"});
  tensor->all_reduce(stream_, values.tensor()).wait(stream_);
  EXPECT_EQ(clock_.now(), 0.0);
  EXPECT_EQ(values.get(1), 4 * value_of(3, 1));
  data->all_reduce(stream_, values.tensor()).wait(stream_);
  EXPECT_GT(clock_.now(), 25e-6);
  world_.set_instant({});
  const double before = clock_.now();
  tensor->all_reduce(stream_, values.tensor()).wait(stream_);
  EXPECT_GT(clock_.now(), before + 9e-6);
}

TEST_F(EmulatedTest, MessagesArriveWhenTheyAreSaidTo) {
  const auto group = world_.make_group("pipeline", {3, 11});
  Values values(DType::f32, 1000);
  const auto receive = [&] { return group->exchange(stream_, {}, {{1, values.tensor()}}); };
  clock_.advance(1.0);
  world_.set_arrivals(stream_, {0.5, 0.75, 0.25});
  const Pending first = receive();
  const Pending second = receive();
  const Pending third = receive();
  first.wait(stream_);
  EXPECT_NEAR(clock_.now(), 1.5, 1e-12);
  second.wait(stream_);
  EXPECT_NEAR(clock_.now(), 1.75, 1e-12);
  third.wait(stream_);  // it arrived long ago
  EXPECT_NEAR(clock_.now(), 1.75, 1e-12);
  // Those that nobody said anything of.
  receive().wait(stream_);
  EXPECT_NEAR(clock_.now(), 1.75 + 15e-6 + 4000 / 40e9, 1e-12);
  world_.set_arrivals(stream_, {0.125});
  const double marked = clock_.now();
  clock_.advance(0.5);
  receive().wait(stream_);
  EXPECT_NEAR(clock_.now(), marked + 0.5, 1e-12);
}

TEST_F(EmulatedTest, RefusesARankThatIsNotThereAndLinksThatAreMissing) {
  for (const int rank : {-1, 32}) {
    expect_error(ErrorKind::user, {fmt::format("no rank {} among 32 ranks", rank), "the last is 31"},
                 [&] { EmulatedWorld(rank, 32, {.wire = wire_of_eights()}, clock_); });
  }
  Wire wire = wire_of_eights();
  wire.link(LinkKind::between) = {};
  EmulatedWorld world(3, 32, {.wire = wire}, clock_);
  expect_error(ErrorKind::user, {"no link between machines", "group 'replicas'"}, [&] {
    world.make_group("replicas", {3, 11});
  });
  wire.link(LinkKind::inside).bytes_per_second = 0.0;
  expect_error(ErrorKind::user, {"bandwidth of 0"}, [&] { EmulatedWorld(0, 2, {.wire = wire}, clock_); });
}

}  // namespace
}  // namespace megalith::comm
