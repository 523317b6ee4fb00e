#include "data/order/index_cache.h"

#include <gtest/gtest.h>

#include "data/data_testing.h"
#include "data/order/blend.h"
#include "data/order/blended_dataset.h"
#include "data/order/index_bench.h"

namespace megalith::data {
namespace {

TEST(IndexFile, GivesBackWhatWasWritten) {
  const TempDir directory;
  const std::string path = directory / "file";
  const std::vector<int32_t> ints(40000, 7);  // three chunks
  const std::vector<int64_t> wide = {1, 2, 3};
  IndexFile::write(path, 5, {1, 2}, {10, 20}, {std::as_bytes(std::span(ints)), {}, std::as_bytes(std::span(wide))});
  EXPECT_EQ(directory.files(), 1);
  const IndexFile file(path, 5, {1, 2});
  EXPECT_EQ(file.numbers()[1], 20);
  ASSERT_EQ(file.array(0).size(), 160000u);
  EXPECT_EQ(file.array(1).size(), 0u);
  file.verify(file.array(0).data(), 160000);
  file.verify(file.array(2).data(), 24);
  EXPECT_EQ(std::memcmp(file.array(2).data(), wide.data(), 24), 0);
  EXPECT_THROW(IndexFile(path, 6, {1, 2}), DamagedIndex);
  EXPECT_THROW(IndexFile(path, 5, {1, 3}), DamagedIndex);
}

TEST(IndexFile, FindsDamageWhereItIsUsed) {
  const TempDir directory;
  const std::string path = directory / "file";
  const std::vector<int32_t> ints(40000, 7);
  IndexFile::write(path, 5, {}, {}, {std::as_bytes(std::span(ints))});
  std::string bytes = read_bytes(path);
  bytes[bytes.size() - 1] ^= 1;
  write_bytes(path, bytes);
  const IndexFile file(path, 5, {});
  file.verify(file.array(0).data(), 65536);
  EXPECT_THROW(file.verify(file.array(0).data() + 131072, 4), DamagedIndex);
}

// Rows of a blend from a file lead to the same samples as dealing from the start, damaged or not.
TEST(IndexCache, KeepsRowsOfABlend) {
  const TempDir directory;
  std::vector<std::string> warnings;
  const IndexCache cache(directory.path(), [&warnings](const std::string& text) { warnings.push_back(text); });
  const std::vector<double> weights = normalised(std::vector<double>{3, 1, 0.3});
  const auto rows = cache.blend_rows(weights, {}, 1000, 100);
  ASSERT_EQ(rows->array(0).size(), 11u * 3 * 8);
  EXPECT_EQ(cache.blend_rows(weights, {}, 1000, 100)->array(0).size(), 11u * 3 * 8);
  EXPECT_EQ(cache.counts().built, 1);
  BlendOrder order(weights);
  std::vector<BlendEntry> entries(700);
  order.next(entries);
  std::vector<int64_t> row(3);
  std::memcpy(row.data(), rows->array(0).data() + 7 * 24, 24);
  EXPECT_EQ(row, order.taken());
  EXPECT_TRUE(warnings.empty());
}

class Empty : public Dataset {
 public:
  const std::string& name() const override { return name_; }
  int64_t sequence_length() const override { return 1; }
  int64_t size() const override { return 1; }
  void sample(int64_t, std::span<int32_t>) const override {}

 private:
  std::string name_ = "empty";
};

TEST(BlendedDataset, IsTheSameFromACacheAndFromADamagedOne) {
  const TempDir directory;
  const std::vector<double> weights = normalised(std::vector<double>{3, 1, 0.3});
  constexpr int64_t kSamples = (int64_t{1} << 20) + 50000;
  std::vector<std::string> warnings;
  const auto make = [&](bool cached) {
    std::vector<std::unique_ptr<Dataset>> datasets;
    for (int i = 0; i < 3; ++i) datasets.push_back(std::make_unique<Empty>());
    BlendedDataset::Options options{.weights = weights, .samples = kSamples};
    if (cached) {
      options.cache = std::make_shared<const IndexCache>(
          directory.path(), [&warnings](const std::string& text) { warnings.push_back(text); });
    }
    return std::make_unique<BlendedDataset>(std::move(datasets), options);
  };
  const auto plain = make(false);
  std::vector<BlendEntry> expected;
  const std::vector<int64_t> places = {kSamples + 100000, 0, kSamples - 1, 5, 1 << 20, (1 << 20) - 1,
                                       (1 << 20) + 20000};
  for (const int64_t place : places) expected.push_back(plain->locate(place));
  for (const bool damage : {false, false, true}) {
    if (damage) {
      for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
        std::string bytes = read_bytes(entry.path());
        bytes[bytes.size() - 20] ^= 1;
        write_bytes(entry.path(), bytes);
      }
    }
    const auto dataset = make(true);
    for (size_t i = 0; i < places.size(); ++i) EXPECT_EQ(dataset->locate(places[i]), expected[i]) << places[i];
    EXPECT_EQ(warnings.size(), damage ? 1u : 0u);
  }
}

TEST(BenchIndex, BuildsAndReopens) {
  const TempDir directory;
  const IndexBenchResult result =
      bench_index({.datasets = 20, .tokens = 20'000'000, .threads = 2, .directory = directory.path()});
  EXPECT_GT(result.documents, 15000);
  EXPECT_GT(result.samples, 8000);
  EXPECT_GT(result.blend_samples, 8000);
  EXPECT_GT(result.bytes, result.samples * 12);
  EXPECT_EQ(directory.files(), 0);
}

}  // namespace
}  // namespace megalith::data
