#include "data/order/dataset.h"

#include <gtest/gtest.h>

#include "data/data_testing.h"
#include "data/order/mock_sequences.h"

namespace megalith::data {
namespace {

std::shared_ptr<const Sequences> counting(const std::vector<int32_t>& lengths) {
  std::vector<std::vector<int32_t>> sequences;
  int32_t next = 0;
  for (const int32_t length : lengths) {
    auto& sequence = sequences.emplace_back();
    for (int32_t i = 0; i < length; ++i) sequence.push_back(next++);
  }
  return std::make_shared<Sequences>(sequences);
}

std::vector<int32_t> sample_of(const Dataset& dataset, int64_t index) {
  std::vector<int32_t> tokens(static_cast<size_t>(dataset.sequence_length() + 1));
  dataset.sample(index, tokens);
  return tokens;
}

// Concatenates the documents in the order of the index and cuts samples out of that.
TEST(GptDataset, SamplesAreCutFromTheWalkOverDocuments) {
  const auto source = counting({5, 0, 1, 4, 8, 3, 7, 9});
  for (const int64_t length : {1, 3, 4, 20}) {
    const GptDataset dataset(
        source, {.range = {1, 7}, .vocabulary = {100, -1}, .sequence_length = length, .horizon = 30, .seed = 3});
    std::vector<int32_t> walk;
    for (const int32_t sequence : dataset.index().document_index()) {
      EXPECT_TRUE(sequence >= 1 && sequence < 7);
      const auto tokens = read_tokens(*source, {sequence, sequence + 1});
      walk.insert(walk.end(), tokens.begin(), tokens.end());
    }
    ASSERT_GE(dataset.size(), 30);
    for (int64_t i = 0; i < dataset.size(); ++i) {
      const auto begin = walk.begin() + dataset.index().shuffle_index(i) * length;
      EXPECT_EQ(sample_of(dataset, i), std::vector<int32_t>(begin, begin + length + 1));
    }
  }
}

TEST(GptDataset, GoesOnBeyondItsHorizonWithoutReshuffling) {
  const auto source = counting({50, 60, 70});
  const GptDataset::Options options{
      .range = {0, 3}, .vocabulary = {200, -1}, .sequence_length = 8, .horizon = 40, .seed = 3};
  const GptDataset dataset(source, options);
  GptDataset::Options next = options;
  next.seed = 4;
  const GptDataset second(source, next);
  for (int64_t i = 0; i < second.size(); ++i) EXPECT_EQ(sample_of(dataset, dataset.size() + i), sample_of(second, i));
  EXPECT_NE(sample_of(dataset, dataset.size()), sample_of(dataset, 0));
}

TEST(GptDataset, RepeatsDataShorterThanASample) {
  const GptDataset dataset(counting({2, 1}),
                           {.range = {0, 2}, .vocabulary = {3, -1}, .sequence_length = 16, .horizon = 0, .seed = 1});
  EXPECT_GE(dataset.size(), 1);
  EXPECT_EQ(sample_of(dataset, 0).size(), 17u);
}

TEST(GptDataset, RefusesDataWithoutTwoTokens) {
  expect_error(ErrorKind::user, {"sequences in memory", "1 tokens"}, [] {
    GptDataset(counting({0, 1}),
               {.range = {0, 2}, .vocabulary = {3, -1}, .sequence_length = 16, .horizon = 1, .seed = 1});
  });
}

TEST(GptDataset, RefusesIdsOutsideOfTheVocabulary) {
  for (const int32_t bad : {257, -1, INT32_MAX}) {
    const auto source =
        std::make_shared<Sequences>(std::vector<std::vector<int32_t>>{{1, 2, 3}, {4, 256, bad, 5}, {6}});
    const GptDataset dataset(
        source, {.range = {0, 3}, .vocabulary = {257, 256}, .sequence_length = 7, .horizon = 1, .seed = 1});
    expect_error(ErrorKind::data,
                 {"sequences in memory", "sequence 1", "position 2", "id " + std::to_string(bad), "vocabulary of 257"},
                 [&dataset] { sample_of(dataset, 0); });
  }
}

TEST(ReadTokens, ReadsARange) {
  const auto source = counting({2, 0, 3, 2});
  EXPECT_EQ(read_tokens(*source, {1, 3}), (std::vector<int32_t>{2, 3, 4}));
  EXPECT_EQ(read_tokens(*source, {2, 2}), std::vector<int32_t>{});
}

TEST(MockSequences, CountsUpToEod) {
  const MockSequences mock({257, 256});
  EXPECT_EQ(mock.sequences(), 100000);
  ASSERT_EQ(mock.length(7), 68);
  const auto tokens = read_tokens(mock, {7, 8});
  EXPECT_EQ(tokens.front(), 1);
  EXPECT_EQ(tokens[66], 67);
  EXPECT_EQ(tokens.back(), 256);
  const auto wraps = read_tokens(mock, {6, 7});  // 309 tokens
  EXPECT_EQ(wraps[255], 256);
  EXPECT_EQ(wraps[256], 0);
  std::vector<int32_t> piece(3);
  mock.read(7, 65, piece);
  EXPECT_EQ(piece, (std::vector<int32_t>{66, 67, 256}));
}

}  // namespace
}  // namespace megalith::data
