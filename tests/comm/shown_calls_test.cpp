// What a rank's status page shows of its groups.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "comm/collective_cases.h"
#include "comm/local/local_world.h"
#include "core/process/status_reader.h"
#include "temp_dir.h"

namespace megalith::comm {
namespace {

// Ranks with pages, as threads.
class ShownCalls : public ::testing::Test {
 protected:
  template <class Body>
  void run(int ranks, Body body) {
    run_local_ranks(ranks, [&](World& world) {
      const std::filesystem::path path = directory_ / std::to_string(world.rank());
      StatusPage::create(path, {.run = "test", .rank = world.rank()});
      StatusPage page(path, world.rank(), 0);
      world.set_status_page(page);
      body(world, StatusReader(path));
    });
  }

  testing::TempDir directory_;
};

Tensor vector_of(std::array<float, 3>& values) {
  return Tensor(values.data(), DType::f32, {std::ssize(values)});
}

TEST_F(ShownCalls, CollectivesAndExchangesAreCountedApart) {
  run(3, [](World& world, const StatusReader& reader) {
    CpuStream stream;
    const auto alone = world.make_group("alone", {world.rank()});
    const auto group = world.make_world_group();
    std::array<float, 3> values{1, 2, 3};
    std::array<float, 3> from_left{};
    alone->all_reduce(stream, vector_of(values)).wait(stream);
    group->barrier(stream).wait(stream);
    group->all_reduce(stream, vector_of(values)).wait(stream);
    const int right = (world.rank() + 1) % 3;
    const int left = (world.rank() + 2) % 3;
    group->send_receive(stream, {right, vector_of(values)}, {left, vector_of(from_left)}).wait(stream);
    const std::vector<RankStatus::Group> shown = reader.read().groups;
    ASSERT_EQ(shown.size(), 1u) << "a group of one waits for nobody";
    EXPECT_EQ(shown[0].name, "world");
    EXPECT_EQ(shown[0].size, 3);
    EXPECT_EQ(shown[0].member, world.rank());
    EXPECT_EQ(shown[0].collectives, (RankStatus::Calls{.entered = 3, .finished = 3})) << "the first one connects";
    EXPECT_EQ(shown[0].exchanges, (RankStatus::Calls{.entered = 1, .finished = 1}));
    EXPECT_EQ(shown[0].operation, "exchange");
    EXPECT_EQ(shown[0].bytes, 12);
    EXPECT_EQ(shown[0].peers, (std::array{right, left}));
  });
}

TEST_F(ShownCalls, WhoDoesNotArriveIsBehindThoseWhoWait) {
  std::atomic<bool> is_waited_for{false};
  run(2, [&](World& world, const StatusReader& reader) {
    CpuStream stream;
    const auto group = world.make_world_group();
    std::array<float, 3> values{1, 2, 3};
    if (world.rank() == 0) {
      const Pending pending = group->all_reduce(stream, vector_of(values));
      while (!reader.read().groups.at(0).waits()) std::this_thread::yield();
      EXPECT_EQ(reader.read().groups.at(0).operation, "all_reduce");
      EXPECT_EQ(reader.read().groups.at(0).bytes, 12);
      EXPECT_EQ(reader.read().groups.at(0).collectives.entered, 2);
      is_waited_for = true;
      pending.wait(stream);
      EXPECT_FALSE(reader.read().groups.at(0).waits());
    } else {
      while (!is_waited_for) std::this_thread::yield();
      EXPECT_FALSE(reader.read().groups.at(0).waits());
      EXPECT_EQ(reader.read().groups.at(0).collectives.entered, 1);
      group->all_reduce(stream, vector_of(values)).wait(stream);
    }
  });
}

}  // namespace
}  // namespace megalith::comm
