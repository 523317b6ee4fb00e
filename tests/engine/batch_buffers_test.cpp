#include "engine/batch_buffers.h"

#include <gtest/gtest.h>

namespace megalith::engine {
namespace {

std::vector<int32_t> values_of(const Tensor& tensor) {
  const auto* values = tensor.as<int32_t>();
  return {values, values + tensor.elements()};
}

class BatchBuffersTest : public ::testing::Test {
 protected:
  static data::MicroBatch micro_batch(std::vector<int32_t> inputs) {
    data::MicroBatch batch{.inputs = std::move(inputs), .batch = 2, .length = 3};
    batch.targets.resize(batch.inputs.size());
    batch.weights.resize(batch.inputs.size(), 1.0F);
    batch.sample_ids = {0, 1};
    return batch;
  }
  static constexpr BatchBuffers::Sizes kSizes{
      .batch = 2, .length = 3, .count = 2, .ordered_ids = 10, .ordered_positions = 3};

  ThreadPool pool_{1};
  Stream stream_{pool_};
  Arena arena_{"batch", Device::cpu, int64_t{1} << 20};
};

TEST_F(BatchBuffersTest, PutsTheRowsOfEachMicroBatchInOrder) {
  BatchBuffers buffers(stream_, arena_, kSizes);
  data::MicroBatch with_positions = micro_batch({1, 0, 1, 0, 9, 1});
  with_positions.position_ids = {0, 1, 0, 0, 1, 2};
  buffers.upload(stream_, 0, micro_batch({5, 2, 9, 2, 0, 5}));
  buffers.start_order(stream_, 0);
  buffers.upload(stream_, 1, with_positions);
  buffers.start_order(stream_, 1);
  buffers.wait_for_order(stream_, 0);
  EXPECT_EQ(values_of(buffers[0].order.keys), (std::vector<int32_t>{0, 2, 2, 5, 5, 9}));
  EXPECT_EQ(values_of(buffers[0].order.rows), (std::vector<int32_t>{4, 1, 3, 0, 5, 2}));
  EXPECT_FALSE(buffers[0].positions_order);
  buffers.wait_for_order(stream_, 1);
  EXPECT_EQ(values_of(buffers[1].order.rows), (std::vector<int32_t>{1, 3, 0, 2, 5, 4}));
  EXPECT_EQ(values_of(buffers[1].positions_order.keys), (std::vector<int32_t>{0, 0, 0, 1, 1, 2}));
  EXPECT_EQ(values_of(buffers[1].positions_order.rows), (std::vector<int32_t>{0, 2, 3, 1, 4, 5}));

  buffers.upload(stream_, 1, micro_batch({3, 2, 1, 0, 1, 2}));
  buffers.start_order(stream_, 1);
  EXPECT_EQ(values_of(buffers[1].order.rows), (std::vector<int32_t>{3, 2, 4, 1, 5, 0}));
  EXPECT_FALSE(buffers[1].positions_order) << "of the micro batch before";
}

TEST_F(BatchBuffersTest, MakesNoOrderWhereNobodyNeedsOne) {
  BatchBuffers buffers(stream_, arena_, {.batch = 2, .length = 3});
  const int64_t used = arena_.used();
  buffers.upload(stream_, 0, micro_batch({5, 2, 9, 2, 0, 5}));
  buffers.start_order(stream_, 0);
  buffers.wait_for_order(stream_, 0);
  EXPECT_FALSE(buffers[0].order);
  EXPECT_EQ(values_of(buffers[0].ids), (std::vector<int32_t>{5, 2, 9, 2, 0, 5}));
  EXPECT_EQ(arena_.used(), used);
}

TEST_F(BatchBuffersTest, RefusesAnotherShape) {
  BatchBuffers buffers(stream_, arena_, kSizes);
  data::MicroBatch longer = micro_batch({5, 2, 9, 2, 0, 5});
  longer.length = 4;
  EXPECT_THROW(buffers.upload(stream_, 0, longer), Error);
}

}  // namespace
}  // namespace megalith::engine
