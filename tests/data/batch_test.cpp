#include "data/batch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "data/data_testing.h"

namespace megalith::data {
namespace {

// Sample i is 10 i, 10 i + 1, 10 i + 2, 10 i + 3.
class Numbered : public Dataset {
 public:
  const std::string& name() const override { return name_; }
  int64_t sequence_length() const override { return 3; }
  int64_t size() const override { return 1000; }
  void sample(int64_t index, std::span<int32_t> tokens) const override {
    highest = std::max(highest.load(), index);
    if (index == fails_at) data_error("sample {} is bad", index);
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(10 * index + static_cast<int64_t>(i));
  }

  mutable std::atomic<int64_t> highest{-1};
  std::atomic<int64_t> fails_at{-1};

 private:
  std::string name_ = "numbered";
};

std::vector<int64_t> ids_of(const StepBatch& step) {
  std::vector<int64_t> ids;
  for (const MicroBatch& micro : step.micro_batches)
    ids.insert(ids.end(), micro.sample_ids.begin(), micro.sample_ids.end());
  return ids;
}

TEST(Batcher, ShiftsTargetsByOne) {
  const Numbered dataset;
  Batcher batcher(dataset, {.global_batch = 4, .micro_batch = 2});
  const StepBatch step = batcher.next();
  ASSERT_EQ(step.micro_batches.size(), 2u);
  const MicroBatch& micro = step.micro_batches[1];
  EXPECT_EQ(micro.batch, 2);
  EXPECT_EQ(micro.length, 3);
  EXPECT_EQ(micro.sample_ids, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(micro.inputs, (std::vector<int32_t>{20, 21, 22, 30, 31, 32}));
  EXPECT_EQ(micro.targets, (std::vector<int32_t>{21, 22, 23, 31, 32, 33}));
  EXPECT_EQ(micro.weights, std::vector<float>(6, 1.0f));
  EXPECT_EQ(step.total_weight, 12.0);
  EXPECT_GE(step.wait_seconds, 0.0);
}

TEST(Batcher, ABatchThatGrowsTakesTheSamplesInTheSameOrder) {
  const Numbered dataset;
  config::Model model;
  model.global_batch_size = 8;
  model.rampup_batch_size = {4, 4, 8};
  const BatcherOptions options{
      .global_batch = 8, .ramp = config::BatchRamp(model), .micro_batch = 2, .data_rank = 1, .data_ranks = 2};
  Batcher batcher(dataset, options);
  EXPECT_EQ(ids_of(batcher.next()), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(ids_of(batcher.next()), (std::vector<int64_t>{6, 7}));
  EXPECT_EQ(ids_of(batcher.next()), (std::vector<int64_t>{10, 11, 14, 15}));
  EXPECT_EQ(batcher.consumed_samples(), 16);
  // Where it begins in the middle of the ramp, too.
  BatcherOptions later = options;
  later.consumed_samples = 4;
  EXPECT_EQ(ids_of(Batcher(dataset, later).next()), (std::vector<int64_t>{6, 7}));
}

TEST(Batcher, DealsBlocksToRanks) {
  const Numbered dataset;
  Batcher first(dataset,
                {.global_batch = 8, .micro_batch = 2, .data_rank = 0, .data_ranks = 2, .consumed_samples = 16});
  Batcher second(dataset,
                 {.global_batch = 8, .micro_batch = 2, .data_rank = 1, .data_ranks = 2, .consumed_samples = 16});
  EXPECT_EQ(ids_of(first.next()), (std::vector<int64_t>{16, 17, 20, 21}));
  EXPECT_EQ(ids_of(second.next()), (std::vector<int64_t>{18, 19, 22, 23}));
  EXPECT_EQ(ids_of(first.next()), (std::vector<int64_t>{24, 25, 28, 29}));
  EXPECT_EQ(first.consumed_samples(), 32);
}

TEST(Batcher, ResumesWhereItStood) {
  const Numbered dataset;
  Batcher whole(dataset, {.global_batch = 3});
  for (int i = 0; i < 5; ++i) whole.next();
  Batcher resumed(dataset, {.global_batch = 3, .consumed_samples = whole.consumed_samples()});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ids_of(whole.next()), ids_of(resumed.next()));
}

TEST(Batcher, MasksTheLossBehindEod) {
  const Numbered dataset;
  Batcher batcher(dataset, {.global_batch = 2, .eod_mask_loss = true, .eod = 11});
  const StepBatch step = batcher.next();
  EXPECT_EQ(step.micro_batches[0].weights, (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(step.micro_batches[1].weights, (std::vector<float>{1, 0, 1}));
  EXPECT_EQ(step.total_weight, 5.0);
}

TEST(Batcher, MarksDocumentsWhereAskedTo) {
  const Numbered dataset;
  const auto first = [&dataset](BatcherOptions options) {
    options.global_batch = 2;
    options.micro_batch = 2;
    options.eod = 11;
    return Batcher(dataset, options).next().micro_batches[0];
  };
  const MicroBatch mask = first({.reset_attention_mask = true});
  EXPECT_EQ(mask.document_starts, (std::vector<int32_t>{0, 0, 0, 0, 0, 2}));
  EXPECT_TRUE(mask.position_ids.empty());
  const MicroBatch positions = first({.reset_position_ids = true});
  EXPECT_TRUE(positions.document_starts.empty());
  EXPECT_EQ(positions.position_ids, (std::vector<int32_t>{0, 1, 2, 0, 1, 0}));
  EXPECT_TRUE(first({}).document_starts.empty());
}

TEST(Batcher, ReadsOneStepAheadAndNotPastTheEnd) {
  const Numbered dataset;
  Batcher batcher(dataset, {.global_batch = 2, .read_ahead_until = 6});
  batcher.next();
  batcher.next();  // had to wait for the read-ahead of this step, and starts the third
  EXPECT_GE(dataset.highest, 3);
  EXPECT_LE(dataset.highest, 5);
  batcher.next();
  EXPECT_EQ(dataset.highest, 5);
  EXPECT_EQ(ids_of(batcher.next()), (std::vector<int64_t>{6, 7}));
}

TEST(Batcher, ThrowsWhatReadingAheadMetAndTriesAgain) {
  Numbered dataset;
  dataset.fails_at = 3;
  Batcher batcher(dataset, {.global_batch = 2});
  batcher.next();
  expect_error(ErrorKind::data, {"sample 3 is bad"}, [&batcher] { batcher.next(); });
  EXPECT_EQ(batcher.consumed_samples(), 2);
  dataset.fails_at = -1;
  EXPECT_EQ(ids_of(batcher.next()), (std::vector<int64_t>{2, 3}));
}

TEST(Batcher, RefusesUnevenBatches) {
  const Numbered dataset;
  expect_error(ErrorKind::user, {"global_batch_size 6", "micro_batch_size 2", "2 data-parallel"},
               [&dataset] { Batcher(dataset, {.global_batch = 6, .micro_batch = 2, .data_ranks = 2}); });
}

}  // namespace
}  // namespace megalith::data
