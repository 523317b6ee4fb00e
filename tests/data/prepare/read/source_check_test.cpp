#include "data/prepare/read/source_check.h"

#include <gtest/gtest.h>

#include "data/files/dataset_check.h"
#include "data/prepare/prepare_fixture.h"

namespace megalith::data {
namespace {

class SourceCheck : public PrepareTest {
 protected:
  std::string prefix() const { return directory_ / "out_text_document"; }

  SourceComparison compare(int threads = 1) {
    return compare_with_source(IndexedDataset(prefix()), nlohmann::ordered_json::parse(read_bytes(prefix() + ".json")),
                               tokenizer_, threads);
  }
  void flip_first_token() {
    std::string bin = read_bytes(prefix() + ".bin");
    bin[0] = static_cast<char>(bin[0] ^ 1);
    write_bytes(prefix() + ".bin", bin);
  }
};

TEST_F(SourceCheck, FindsNothingInWhatPrepareMade) {
  auto options = single("in.jsonl", line_of("a") + "broken\n" + line_of("") + line_of("b\x80") + line_of("c"));
  options.encode.on_error = OnError::skip;
  options.encode.bad_text = BadText::replace;
  options.encode.bos = '^';
  run(options);
  const SourceComparison comparison = compare();
  EXPECT_EQ(comparison.problem, "");
  EXPECT_EQ(comparison.documents, 4);
}

TEST_F(SourceCheck, TakesASampleOfMany) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += line_of(fmt::format("document {}", i));
  auto options = single("in.jsonl.zst", zstd_of(text));
  run(options);
  for (const int threads : {1, 3}) {
    const SourceComparison comparison = compare(threads);
    EXPECT_EQ(comparison.problem, "");
    EXPECT_GT(comparison.documents, 50);
    EXPECT_LT(comparison.documents, 200);
  }
}

TEST_F(SourceCheck, AFileThatWasLeftOutIsLeftOutAgain) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += line_of(fmt::format("document number {}", i * 7919));
  auto options = single("in0.jsonl", line_of("before"));
  options.inputs.push_back(put("in1.jsonl.zst", zstd_of(text).substr(0, zstd_of(text).size() - 5)));
  options.inputs.push_back(put("in2.jsonl", line_of("behind")));
  options.encode.on_error = OnError::skip;
  run(options);
  EXPECT_EQ(compare().problem, "");
  EXPECT_EQ(compare().documents, 2);
}

TEST_F(SourceCheck, NamesTheDocumentThatDiffers) {
  run(single("in.jsonl", line_of("") + line_of("abc") + line_of("def")));
  flip_first_token();
  const SourceComparison comparison = compare();
  for (const char* piece : {"document 1", "in.jsonl", "differ at token 0"}) {
    EXPECT_NE(comparison.problem.find(piece), std::string::npos) << comparison.problem;
  }
}

TEST_F(SourceCheck, RefusesOtherTokenizersAndOtherSources) {
  run(single("in.jsonl", line_of("abc")));
  const IndexedDataset dataset(prefix());
  const auto sidecar = nlohmann::ordered_json::parse(read_bytes(prefix() + ".json"));
  expect_error(ErrorKind::user, {"another tokenizer"},
               [&] { compare_with_source(dataset, sidecar, LengthTokenizer(300), 1); });
  expect_error(ErrorKind::data, {"does not say from which text"}, [&] {
    compare_with_source(dataset, {{"merged", 1}}, tokenizer_, 1);
  });
  put("in.jsonl", line_of("another text"));
  expect_error(ErrorKind::data, {"in.jsonl", "changed"}, [&] { compare(); });
}

TEST_F(SourceCheck, CheckUsesItAndWhatTheSidecarPromises) {
  run(single("in.jsonl", line_of("abc")));
  const CheckOptions options{.source_tokenizer = &tokenizer_};
  CheckReport report = check_dataset(prefix(), options);
  EXPECT_EQ(report.problems, Texts{});
  EXPECT_EQ(report.encoded_again, 1);
  write_bytes(prefix() + ".bin", bytes_of<uint16_t>({'a', 'b', 300, 'd'}));
  report = check_dataset(prefix(), options);
  ASSERT_EQ(report.problems.size(), 4u);  // digest, id beyond the vocabulary, no eod, other ids than the source's
  EXPECT_NE(report.problems[1].find("vocabulary of 257"), std::string::npos) << report.problems[1];
  EXPECT_NE(report.problems[2].find("token 256"), std::string::npos) << report.problems[2];
  EXPECT_NE(report.problems[3].find("differ at token 2"), std::string::npos) << report.problems[3];
  std::filesystem::remove(prefix() + ".json");
  EXPECT_NE(check_dataset(prefix(), options).problems.back().find("no sidecar"), std::string::npos);
}

}  // namespace
}  // namespace megalith::data
