#include "data/order/make_dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "core/process/failpoint.h"
#include "data/data_testing.h"
#include "data/order/blend.h"
#include "data/write_dataset.h"

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
  run.model.data.data_impl = config::DataImpl::mock;
  run.model.encoder_seq_length = 512;
  const auto dataset = make_dataset(run, Split::valid, {257, 256}, 100);
  EXPECT_EQ(dataset->sequence_length(), 512);
  EXPECT_GT(dataset->size(), 130000);
  const auto& gpt = dynamic_cast<const GptDataset&>(*dataset);
  for (const int32_t sequence : gpt.index().document_index()) ASSERT_TRUE(sequence >= 33333 && sequence < 66667);
}

class MakeDatasetTest : public ::testing::Test {
 protected:
  MakeDatasetTest() {
    std::vector<std::vector<int32_t>> documents;
    for (int32_t i = 0; i < 100; ++i) documents.emplace_back(20, i);
    test::write_dataset(directory_ / "set", 257, documents);
    run_.model.data.data_prefix = {directory_ / "set"};
    run_.model.data.splits_string = "90, 10";
  }

  TempDir directory_;
  config::Run run_ = small_run();
};

TEST_F(MakeDatasetTest, OpensThePrefixAndCutsTheSplit) {
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

// The first tokens of samples, which are the numbers of their documents, as numpy's RandomState(7) gives them. An epoch
// has 199 samples; 0.5 % more of them ask for a second epoch, whose shuffle comes before that of the samples.
TEST_F(MakeDatasetTest, BlendsALoneDatasetWithAWeightUnlessItsSplitHasAListOfItsOwn) {
  run_.model.data.seq_length = 10;
  run_.model.seed = 7;
  const auto documents = [this](Split split) {
    const auto dataset = make_dataset(run_, split, {257, 256}, 199);
    std::vector<int32_t> found;
    for (int64_t i = 0; i < 12; ++i) {
      std::vector<int32_t> tokens(11);
      dataset->sample(i < 8 ? i : 187 + i, tokens);
      found.push_back(tokens[0]);
    }
    return found;
  };
  const std::vector<int32_t> exact{35, 20, 55, 65, 8, 59, 38, 21, 18, 72, 2, 30};
  const std::vector<int32_t> with_surplus{97, 36, 71, 41, 98, 73, 60, 21, 12, 94, 15, 96};
  const std::string prefix = directory_ / "set";

  run_.model.data.splits_string = "1,0,0";
  EXPECT_EQ(documents(Split::train), exact);
  run_.model.data.data_prefix = {"1.0", prefix};
  EXPECT_EQ(documents(Split::train), with_surplus);
  run_.model.data.validation_prefix = {"0.5", prefix};
  run_.model.data.test_prefix = {"1.0", prefix};
  for (const Split split : {Split::train, Split::valid, Split::test}) EXPECT_EQ(documents(split), exact);
  run_.model.data.validation_prefix = run_.model.data.test_prefix = {};
  run_.model.data.data_prefix = {"1.0", directory_ / "other", "1.0", prefix};
  run_.model.data.validation_files = 1;
  EXPECT_EQ(documents(Split::valid), exact);
}

TEST_F(MakeDatasetTest, SaysWhatIsWrong) {
  const auto expect = [this](const std::vector<std::string>& pieces, Split split = Split::train) {
    expect_error(ErrorKind::user, pieces, [&] { make_dataset(run_, split, {257, 256}, 7); });
  };
  expect({"90, 10", "test", "100 sequences"}, Split::test);
  run_.model.seed = -1;
  expect({"model.seed"});
  run_.model.seed = 1;
  run_.model.data.data_prefix = {"a", directory_ / "set"};
  expect({"dataset a not found"});
  run_.model.data.data_prefix = {"0", "a", ".5", "b"};
  expect({"weight of a is 0", "share of all training samples"});
  run_.model.data.data_prefix = {"1.0"};
  expect({"without a prefix"});
  run_.model.data.data_prefix = {};
  expect({"data_prefix is empty"});
  run_.model.data.data_prefix = {directory_ / "sett"};
  expect({"sett.idx", "sett.bin", ": set"});
  run_.model.data.data_impl = config::DataImpl::automatic;
  expect({"auto"});
}

std::vector<int32_t> sample_of(const Dataset& dataset, int64_t index) {
  std::vector<int32_t> tokens(static_cast<size_t>(dataset.sequence_length() + 1));
  dataset.sample(index, tokens);
  return tokens;
}

// Three datasets whose tokens tell which one they are from: 0, 1, 2.
class BlendTest : public ::testing::Test {
 protected:
  BlendTest() {
    for (int32_t set = 0; set < 3; ++set) {
      std::vector<std::vector<int32_t>> documents;
      std::mt19937 random(static_cast<uint32_t>(set));
      for (int32_t i = 0; i < 40 * (set + 1); ++i) {
        std::vector<int32_t>& document = documents.emplace_back(10 + random() % 30, set);
        for (size_t at = 1; at < document.size(); at += 2) document[at] = static_cast<int32_t>(3 + random() % 200);
      }
      test::write_dataset(prefix(set), 257, documents);
    }
    run_.model.encoder_seq_length = 10;
    run_.model.data.splits_string = "100,0,0";
  }

  std::string prefix(int32_t set) const { return directory_ / ("set" + std::to_string(set)); }
  std::unique_ptr<Dataset> make(int64_t horizon, Split split = Split::train) const {
    return make_dataset(run_, split, {257, 256}, horizon);
  }
  // Sample by sample through the parts, as Megatron blends them.
  void expect_blend(const Dataset& dataset, const std::vector<double>& raw, int64_t horizon) const {
    const BlendShares blend = shares_of_blend(raw, horizon);
    std::vector<std::unique_ptr<Dataset>> parts;
    for (size_t i = 0; i < raw.size(); ++i) {
      config::Run alone = run_;
      alone.model.data.data_prefix = {prefix(static_cast<int32_t>(i))};
      parts.push_back(make_dataset(alone, Split::train, {257, 256}, blend.requests[i]));
    }
    std::vector<int64_t> taken(raw.size(), 0);
    for (int64_t i = 0; i < dataset.size(); ++i) {
      size_t best = 0;
      const auto error = [&](size_t d) {
        return blend.weights[d] * std::max(static_cast<double>(i), 1.0) - static_cast<double>(taken[d]);
      };
      for (size_t d = 1; d < raw.size(); ++d) best = error(d) > error(best) ? d : best;
      ASSERT_EQ(sample_of(dataset, i), sample_of(*parts[best], taken[best]++)) << i;
    }
  }

  TempDir directory_;
  config::Run run_ = small_run();
};

TEST_F(BlendTest, BlendsByWeight) {
  run_.model.data.data_prefix = {"3", prefix(0), "1.5", prefix(1), "0.01", prefix(2)};
  const auto dataset = make(900);
  EXPECT_EQ(dataset->size(), 599 + 300 + 2);
  expect_blend(*dataset, {3, 1.5, 0.01}, 900);
  // Any order of asking gives the same samples.
  const auto last = sample_of(*dataset, 899);
  const auto other = make(900);
  EXPECT_EQ(sample_of(*other, 899), last);
  EXPECT_EQ(sample_of(*other, 3), sample_of(*dataset, 3));
  // Beyond its end it goes on.
  EXPECT_EQ(sample_of(*other, 200000).size(), 11u);
  EXPECT_EQ(sample_of(*other, 899), last);
}

TEST_F(BlendTest, ExhaustsDatasetsWithoutWeights) {
  run_.model.data.data_prefix = {prefix(0), prefix(1), prefix(2)};
  const auto dataset = make(1);
  std::vector<std::unique_ptr<Dataset>> parts;
  std::vector<std::vector<int32_t>> expected;
  for (int32_t set = 0; set < 3; ++set) {
    config::Run alone = run_;
    alone.model.data.data_prefix = {prefix(set)};
    parts.push_back(make_dataset(alone, Split::train, {257, 256}, 0));
    for (int64_t i = 0; i < parts.back()->size(); ++i) expected.push_back(sample_of(*parts.back(), i));
  }
  ASSERT_EQ(dataset->size(), std::ssize(expected));
  std::vector<std::vector<int32_t>> got;
  for (int64_t i = 0; i < dataset->size(); ++i) got.push_back(sample_of(*dataset, i));
  std::sort(got.begin(), got.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(got, expected);
  // The second round is another order of the same data.
  bool found = false;
  for (int64_t i = 0; i < parts[0]->size(); ++i) {
    found = found || sample_of(*dataset, dataset->size()) == sample_of(*parts[0], parts[0]->size() + i) ||
            sample_of(*dataset, dataset->size()) == sample_of(*parts[2], parts[2]->size() + i);
  }
  EXPECT_TRUE(found);
}

TEST_F(BlendTest, HoldsOutWholeFiles) {
  run_.model.data.data_prefix = {directory_ / "set*"};
  run_.model.data.validation_files = 1;
  run_.model.data.test_files = 1;
  const auto set_of = [this](Split split) {
    const auto dataset = make(20, split);
    std::set<int32_t> seen;
    for (int64_t i = 0; i < dataset->size(); ++i) {
      for (const int32_t token : sample_of(*dataset, i)) {
        if (token < 3) seen.insert(token);
      }
    }
    return seen;
  };
  EXPECT_EQ(set_of(Split::train), std::set<int32_t>{0});
  EXPECT_EQ(set_of(Split::test), std::set<int32_t>{1});
  EXPECT_EQ(set_of(Split::valid), std::set<int32_t>{2});
}

TEST_F(BlendTest, KeepsIndicesByContent) {
  run_.model.data.data_prefix = {"1", prefix(0), "2", prefix(1)};
  const auto plain = make(500);
  run_.model.data.index_mapping_dir = directory_ / "cache";
  const auto counts = [this](const config::Run& run) {
    const auto cache = std::make_shared<const IndexCache>(run.model.data.index_mapping_dir);
    make_dataset(run, Split::train, {257, 256}, 500, cache);
    return cache->counts();
  };
  EXPECT_EQ(counts(run_).built, 2);
  EXPECT_EQ(counts(run_).built, 0);
  EXPECT_EQ(counts(run_).reused, 2);
  const auto kept = make(500);
  for (int64_t i = 0; i < kept->size(); ++i) ASSERT_EQ(sample_of(*kept, i), sample_of(*plain, i));
  // Data that moved: nothing to build.
  for (const char* ending : {".bin", ".idx"}) {
    std::filesystem::copy_file(prefix(0) + ending, directory_ / ("moved" + std::string(ending)));
  }
  config::Run moved = run_;
  moved.model.data.data_prefix[1] = directory_ / "moved";
  EXPECT_EQ(counts(moved).built, 0);
  // Other data under the same name.
  for (const char* ending : {".bin", ".idx"}) {
    std::filesystem::copy_file(prefix(2) + ending, prefix(0) + ending,
                               std::filesystem::copy_options::overwrite_existing);
  }
  EXPECT_EQ(counts(run_).built, 1);
}

TEST_F(BlendTest, EachSplitCanHaveDatasetsOfItsOwn) {
  run_.model.data.data_prefix = {"1", prefix(0), "1", prefix(1)};
  run_.model.data.validation_prefix = {prefix(2)};
  config::Run alone = run_;
  alone.model.data.data_prefix = {prefix(2)};
  alone.model.data.validation_prefix = {};
  const auto expected = make_dataset(alone, Split::train, {257, 256}, 50);
  const auto valid = make(50, Split::valid);
  ASSERT_EQ(valid->size(), expected->size());
  for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(sample_of(*valid, i), sample_of(*expected, i));
  expect_error(ErrorKind::user, {"model.data.test_prefix is empty"}, [&] { make(10, Split::test); });
  expect_error(ErrorKind::user, {"each split has datasets of its own"}, [&] { single_prefix(run_.model.data); });
  run_.model.data.validation_files = 1;
  expect_error(ErrorKind::user, {"validation_files"}, [&] { make(10); });
}

TEST_F(BlendTest, DoesNotBelieveADamagedIndex) {
  run_.model.data.data_prefix = {prefix(2)};
  const auto plain = make(500);
  run_.model.data.index_mapping_dir = directory_ / "cache";
  make(500);
  const auto files = [this] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_ / "cache")) {
      if (entry.path().filename().string().starts_with("samples-")) names.push_back(entry.path());
    }
    return names;
  };
  ASSERT_EQ(files().size(), 1u);
  const std::string whole = read_bytes(files()[0]);
  std::vector<std::string> damaged = {"", whole.substr(0, 100), whole.substr(0, whole.size() - 1), whole + "x"};
  for (size_t at = 0; at < whole.size(); at += 97) {
    damaged.push_back(whole);
    damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ 4);
  }
  for (const std::string& bytes : damaged) {
    write_bytes(files()[0], bytes);
    std::vector<std::string> warnings;
    const auto cache = std::make_shared<const IndexCache>(
        directory_ / "cache", [&warnings](const std::string& text) { warnings.push_back(text); });
    const auto dataset = make_dataset(run_, Split::train, {257, 256}, 500, cache);
    for (int64_t i = 0; i < dataset->size(); ++i) ASSERT_EQ(sample_of(*dataset, i), sample_of(*plain, i));
    if (read_bytes(files()[0]) != bytes) {
      ASSERT_EQ(warnings.size(), 1u);
      EXPECT_NE(warnings[0].find("damaged"), std::string::npos) << warnings[0];
      EXPECT_EQ(read_bytes(files()[0]), whole);
    }
  }
}

TEST_F(BlendTest, TrainsWithoutACacheThatCannotBeWritten) {
  run_.model.data.data_prefix = {"1", prefix(0), "2", prefix(1)};
  std::vector<std::string> warnings;
  const auto cache = std::make_shared<const IndexCache>(
      directory_ / "cache", [&warnings](const std::string& text) { warnings.push_back(text); });
  arm_failpoint("file.write=io");
  const auto dataset = make_dataset(run_, Split::train, {257, 256}, 500, cache);
  disarm_failpoints();
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_EQ(sample_of(*dataset, 400), sample_of(*make(500), 400));
  EXPECT_EQ(std::filesystem::is_empty(directory_ / "cache"), true);
}

}  // namespace
}  // namespace megalith::data
