#include "data/make_dataset.h"

#include <gtest/gtest.h>

#include "data/data_testing.h"
#include "data/indexed_dataset_writer.h"

namespace megalith::data {
namespace {

config::Run small_run() {
  config::Run run;
  run.trainer.max_steps = 100;
  run.trainer.val_check_interval = 30;
  run.trainer.limit_val_batches = 5;
  run.model.global_batch_size = 8;
  run.model.encoder_seq_length = 16;
  return run;
}

TEST(SamplesWanted, CountsAsMegatron) {
  config::Run run = small_run();
  EXPECT_EQ(samples_wanted(run, Split::train), 800);
  EXPECT_EQ(samples_wanted(run, Split::valid), 4 * 5 * 8);
  EXPECT_EQ(samples_wanted(run, Split::test), 5 * 8);
  run.trainer.val_check_interval = 0;
  EXPECT_EQ(samples_wanted(run, Split::valid), 5 * 8);
}

TEST(MakeDataset, MakesMockData) {
  config::Run run = small_run();
  run.model.data.data_impl = "mock";
  run.model.encoder_seq_length = 512;
  const auto dataset = make_dataset(run, Split::valid, {257, 256}, 100);
  EXPECT_EQ(dataset->sequence_length(), 512);
  EXPECT_GT(dataset->size(), 130000);
  const auto& gpt = dynamic_cast<const GptDataset&>(*dataset);
  for (const int32_t sequence : gpt.index().document_index()) ASSERT_TRUE(sequence >= 33333 && sequence < 66667);
}

class MakeDatasetTest : public testing::Test {
 protected:
  MakeDatasetTest() {
    IndexedDatasetWriter writer(directory_ / "set", 257);
    for (int32_t i = 0; i < 100; ++i) writer.add_document(std::vector<int32_t>(20, i));
    writer.finish();
    run_.model.data.data_prefix = {directory_ / "set"};
    run_.model.data.splits_string = "90, 10";
  }

  TemporaryDirectory directory_;
  config::Run run_ = small_run();
};

TEST_F(MakeDatasetTest, OpensThePrefixAndCutsTheSplit) {
  run_.model.data.data_prefix = {"1.0", directory_ / "set"};
  run_.model.data.seq_length = 10;
  const auto dataset = make_dataset(run_, Split::valid, {257, 256}, 7);
  EXPECT_EQ(dataset->sequence_length(), 10);
  EXPECT_EQ(dataset->size(), 19);
  std::vector<int32_t> tokens(11);
  for (int64_t i = 0; i < dataset->size(); ++i) {
    dataset->sample(i, tokens);
    for (const int32_t token : tokens) EXPECT_TRUE(token >= 90 && token < 100);
  }
}

TEST_F(MakeDatasetTest, SaysWhatIsWrong) {
  const auto expect = [this](const std::vector<std::string>& pieces, Split split = Split::train) {
    expect_error(ErrorKind::user, pieces, [&] { make_dataset(run_, split, {257, 256}, 7); });
  };
  expect({"90, 10", "test", "100 sequences"}, Split::test);
  run_.model.seed = -1;
  expect({"model.seed"});
  run_.model.seed = 1;
  run_.model.data.data_prefix = {"a", "b"};
  expect({"blending several datasets is not supported yet"});
  run_.model.data.data_prefix = {".5", "a", ".5", "b"};
  expect({"blending several datasets is not supported yet"});
  run_.model.data.data_prefix = {"1.0"};
  expect({"without a prefix"});
  run_.model.data.data_prefix = {};
  expect({"data_prefix is empty"});
  run_.model.data.data_prefix = {directory_ / "sett"};
  expect({"sett.idx", "sett.bin", ": set"});
  run_.model.data.data_impl = "lazy";
  expect({"lazy"});
}

}  // namespace
}  // namespace megalith::data
