#include "data/files/dataset_check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "core/hash/digest.h"
#include "data/data_testing.h"
#include "data/files/dataset_info.h"
#include "data/write_dataset.h"

namespace megalith::data {
namespace {

constexpr int32_t kEod = 256;

class CheckDataset : public ::testing::Test {
 protected:
  // Documents of 1 to 5 tokens that end with eod, and an empty one; 65600 ids make it int32.
  void write(int64_t vocabulary = 257, int documents = 7) const {
    std::vector<std::vector<int32_t>> written;
    for (int i = 0; i < documents; ++i) {
      written.emplace_back(static_cast<size_t>(i % 5), 10 + i).push_back(kEod);
      if (i == 2) written.emplace_back();
    }
    test::write_dataset(prefix_, vocabulary, written);
  }
  void write_sidecar() const {
    const std::string bin = read_bytes(prefix_ + ".bin");
    const std::string idx = read_bytes(prefix_ + ".idx");
    write_bytes(prefix_ + ".json",
                fmt::format(R"({{"documents": 8, "tokens": {}, "bin": {{"bytes": {}, "xxh3": "{}"}}, )"
                            R"("idx": {{"bytes": {}, "xxh3": "{}"}}}})",
                            bin.size() / 2, bin.size(), digest_of(bin), idx.size(), digest_of(idx)));
  }
  CheckReport check(CheckOptions options = {.vocab_size = 257, .eod = kEod, .eod_only_at_end = true}) const {
    return check_dataset(prefix_, options);
  }
  void expect_problem(const std::vector<std::string>& pieces,
                      const CheckOptions& options = {.vocab_size = 257, .eod = kEod, .eod_only_at_end = true}) const {
    const CheckReport report = check(options);
    ASSERT_EQ(report.problems.size(), 1u) << fmt::format("{}", fmt::join(report.problems, "\n"));
    for (const std::string& piece : pieces) {
      EXPECT_NE(report.problems[0].find(piece), std::string::npos) << piece << " not in " << report.problems[0];
    }
  }
  void change(const std::string& ending, const std::function<void(std::string&)>& edit) const {
    std::string bytes = read_bytes(prefix_ + ending);
    edit(bytes);
    write_bytes(prefix_ + ending, bytes);
  }

  TempDir directory_;
  std::string prefix_ = directory_ / "set";
};

TEST_F(CheckDataset, FindsNothingInAGoodOne) {
  write();
  for (const bool sidecar : {false, true}) {
    if (sidecar) write_sidecar();
    for (const bool quick : {false, true}) {
      const CheckReport report = check({.vocab_size = 257, .eod = kEod, .eod_only_at_end = true, .quick = quick});
      EXPECT_EQ(report.problems, std::vector<std::string>{});
      EXPECT_EQ(report.documents, 8);
      EXPECT_EQ(report.sequences, 7);
      EXPECT_EQ(report.tokens, 7 + 11);
      EXPECT_EQ(report.token_type, "uint16");
      EXPECT_EQ(report.has_sidecar, sidecar);
      EXPECT_EQ(report.largest_id, quick ? -1 : kEod);
    }
  }
}

TEST_F(CheckDataset, ChecksDatasetsOfManyBlocks) {
  std::vector<int32_t> document(1000, 69999);
  document.back() = kEod;
  std::vector<std::vector<int32_t>> documents(3000, document);  // 12 MB
  document[500] = kEod;
  documents.push_back(document);
  document.back() = 5;
  documents.push_back(document);
  test::write_dataset(prefix_, 70000, documents);
  const CheckReport report = check({.vocab_size = 69999, .eod = kEod, .eod_only_at_end = true});
  ASSERT_EQ(report.problems.size(), 3u);
  EXPECT_NE(report.problems[0].find("2998996 token ids"), std::string::npos) << report.problems[0];
  EXPECT_NE(report.problems[0].find("69999 at position 0 of sequence 0"), std::string::npos);
  EXPECT_NE(report.problems[1].find("1 documents do not end"), std::string::npos) << report.problems[1];
  EXPECT_NE(report.problems[1].find("document 3001, which ends with 5"), std::string::npos);
  EXPECT_NE(report.problems[2].find("2 end-of-document tokens"), std::string::npos) << report.problems[2];
}

TEST_F(CheckDataset, FindsBadIdsAndEnds) {
  write();
  expect_problem({"7 token ids", "vocabulary of 256", "256 at position 0 of sequence 0"},
                 {.vocab_size = 256, .eod = -1});
  expect_problem({"7 documents do not end", "token 7", "document 0, which ends with 256"},
                 {.vocab_size = 257, .eod = 7});
  expect_problem({"document 0 ends with 256", "token 7"}, {.eod = 7, .quick = true});
  write(70000);
  change(".bin", [](std::string& bytes) { std::memset(bytes.data() + 4, 0xff, 4); });
  expect_problem({"-1 at position 0 of sequence 1"}, {});
}

TEST_F(CheckDataset, FindsADamagedIndex) {
  struct Case {
    std::vector<std::string> pieces;
    std::function<void(std::string&)> edit;
  };
  const std::vector<Case> cases = {
      {{"does not begin with MMIDIDX"}, [](std::string& idx) { idx[0] = 'X'; }},
      {{"version 2"}, [](std::string& idx) { idx[9] = 2; }},
      {{"dtype code 99"}, [](std::string& idx) { idx[17] = 99; }},
      {{"counts", "sequences"}, [](std::string& idx) { idx[20] = 1; }},
      {{"pointer"}, [](std::string& idx) { idx[34 + 4 * 7 + 8] = 99; }},
      {{"document"}, [](std::string& idx) { idx[idx.size() - 8] = 6; }},
      {{"damaged"}, [](std::string& idx) { idx.pop_back(); }},
  };
  for (const Case& each : cases) {
    write();
    change(".idx", each.edit);
    expect_problem(each.pieces);
  }
  write();
  change(".bin", [](std::string& bytes) { bytes.resize(bytes.size() - 2); });
  expect_problem({"truncated"});
  change(".bin", [](std::string& bytes) { bytes.resize(bytes.size() + 20); });
  expect_problem({"longer"});
  std::filesystem::remove(prefix_ + ".bin");
  expect_problem({".bin is missing"});
}

TEST_F(CheckDataset, ComparesWithTheSidecar) {
  write();
  write_sidecar();
  change(".bin", [](std::string& bytes) { bytes[2] ^= 1; });
  expect_problem({".bin is not as it was written", "XXH3"});
  write();
  change(".json", [](std::string& text) { text.replace(text.find("\"documents\": 8"), 14, "\"documents\": 9"); });
  expect_problem({"8 documents", "sidecar says 9"});
  write_bytes(prefix_ + ".json", "{\"bin\": 3}");
  expect_problem({"sidecar", "damaged"});
  write_bytes(prefix_ + ".json", "not json");
  expect_problem({"sidecar", "damaged"});
}

TEST_F(CheckDataset, ListsDatasets) {
  for (const char* name : {"b10.idx", "b10.bin", "b9.bin", "x.json"}) write_bytes(directory_ / name, "");
  EXPECT_EQ(list_datasets({directory_.path().string(), "other.bin", "plain"}),
            (std::vector<std::string>{directory_ / "b9", directory_ / "b10", "other", "plain"}));
  std::filesystem::create_directory(directory_ / "empty");
  expect_error(ErrorKind::user, {"empty", "no .bin"}, [&] { list_datasets({directory_ / "empty"}); });
  const auto reports = check_datasets(list_datasets({directory_.path().string()}), {.threads = 2});
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].problems.size(), 1u);
  EXPECT_EQ(reports[1].problems.size(), 1u);
}

TEST_F(CheckDataset, DescribesADataset) {
  write();
  const IndexedDataset dataset(prefix_);
  const LengthHistogram histogram = histogram_of(dataset);
  EXPECT_EQ(histogram.counts[1], 2);
  EXPECT_EQ(histogram.counts[2], 3);
  EXPECT_EQ(histogram.counts[3], 2);
  EXPECT_EQ(histogram.longest, 5);
  const std::string text = draw(histogram);
  EXPECT_NE(text.find("2-3            3 ####"), std::string::npos) << text;
  EXPECT_NE(describe_counts(dataset).find("tokens       18 (2.6 per sequence)"), std::string::npos)
      << describe_counts(dataset);
  const ByteTokenizer tokenizer;
  EXPECT_NE(show_samples(dataset, &tokenizer, 7, 3).find("sequence 3 (4 tokens): \\x0d\\x0d\\x0d\n"), std::string::npos)
      << show_samples(dataset, &tokenizer, 7, 3);
  EXPECT_NE(show_samples(dataset, nullptr, 2, 100).find("sequence 3 (4 tokens): 13 13 13 256\n"), std::string::npos);
}

}  // namespace
}  // namespace megalith::data
