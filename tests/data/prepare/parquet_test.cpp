// Parquet files give what the same documents give as JSON lines.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "data/prepare/learn_words.h"
#include "data/prepare/parquet_writer.h"
#include "data/prepare/prepare_fixture.h"
#include "data/prepare/read/read_documents.h"

namespace megalith::data {
namespace {

class Parquet : public PrepareTest {
 protected:
  // Texts with all that JSON escapes.
  static ParquetColumn corpus(int64_t documents) {
    ParquetColumn column{"text", {}};
    for (int64_t i = 0; i < documents; ++i) {
      std::string text = fmt::format("document {}: \"quoted\" back\\slash\n\tZürich \u20ac \U0001F600\r\n", i);
      if (i % 7 == 0) text.clear();
      if (i % 5 == 0) text += std::string("\0\x01\x1f\x7f", 4);
      if (i % 11 == 0) text += std::string(static_cast<size_t>(i) * 10, 'x');
      column.values.emplace_back(std::move(text));
    }
    return column;
  }

  static std::string json_lines(const ParquetColumn& column) {
    std::string lines;
    for (const auto& value : column.values) lines += nlohmann::json{{column.name, *value}}.dump() + "\n";
    return lines;
  }

  // What `prepare` makes of one file, without the sidecar, which names it.
  std::map<std::string, std::string> made_from(const std::string& name, PrepareOptions options) {
    options.inputs = {directory_ / name};
    run(options);
    auto made = outputs();
    made.erase("out_text_document.json");
    for (const auto& file : outputs()) std::filesystem::remove(directory_ / file.first);
    return made;
  }

  PrepareOptions options() const {
    PrepareOptions options;
    options.output_prefix = directory_ / "out";
    options.numbered = false;
    options.encode.append_eod = true;
    return options;
  }
};

TEST_F(Parquet, GivesTheBytesOfJsonLines) {
  const ParquetColumn texts = corpus(95);
  put("in.jsonl", json_lines(texts));
  const auto expected = made_from("in.jsonl", options());
  std::vector<ParquetLayout> layouts;
  for (const char* compression : {"uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4_raw"}) {
    layouts.push_back({.compression = compression});
  }
  for (const char* type : {"large_string", "dictionary"}) layouts.push_back({.type = type});
  layouts.push_back({.dictionary_pages = false, .page_bytes = 1});
  layouts.push_back({.dictionary_pages = false, .delta_encoded = true, .page_bytes = 100});
  layouts.push_back({.second_pages = true, .rows_per_group = 1000, .page_bytes = 100});
  for (const ParquetLayout& layout : layouts) {
    write_parquet(directory_ / "in.parquet", {{"other", texts.values}, texts}, layout);
    for (const int threads : {1, 3}) {
      auto how = options();
      how.threads = threads;
      how.batch_bytes = threads == 1 ? 1 << 20 : 100;
      EXPECT_EQ(made_from("in.parquet", how), expected) << layout.compression << " " << layout.type;
    }
  }
}

// Here Arrow is linked; the program loads it beside libraries of its own.
TEST_F(Parquet, TheProgramReadsIt) {
  const ParquetColumn texts = corpus(95);
  put("in.jsonl", json_lines(texts));
  const auto expected = made_from("in.jsonl", options());
  write_parquet(directory_ / "in.parquet", {texts});
  const std::string command =
      fmt::format("{} data tokenize --input {} --output-prefix {} --append-eod > /dev/null", MEGALITH_PROGRAM,
                  (directory_ / "in.parquet").string(), (directory_ / "out").string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  for (const auto& [name, content] : expected) EXPECT_EQ(read_bytes(directory_ / name), content) << name;
}

TEST_F(Parquet, LongDocumentsAreEncodedInParts) {
  ParquetColumn texts{"text", {"before", std::string(3'000'000, 'x') + "\n", "behind"}};
  put("in.jsonl", json_lines(texts));
  write_parquet(directory_ / "in.parquet", {texts});
  auto how = options();
  how.long_document_bytes = 10'000;
  EXPECT_EQ(made_from("in.parquet", how), made_from("in.jsonl", how));
  how.encode.max_document_bytes = 1'000'000;
  how.inputs = {directory_ / "in.parquet"};
  expect_error(ErrorKind::data, {"in.parquet: row group 0, row 1: document too long"}, [&] { run(how); });
}

TEST_F(Parquet, KeepsAndTakesSeveralColumns) {
  write_parquet(directory_ / "in.parquet", {{"set.name", {"A", "B", "A", std::nullopt}},
                                            {"title", {"t0", "t1", "t2", "t3"}},
                                            {"text", {"0", "1", "2", "3"}}});
  auto how = options();
  how.inputs = {directory_ / "in.parquet"};
  how.encode.json_keys = {"text", "title"};
  how.encode.keep = {parse_field_filter("set\\.name=A,C")};
  EXPECT_EQ(run(how).keys[0].counts.filtered, 2);
  EXPECT_EQ(documents(), (Texts{"0$", "2$"}));
  EXPECT_EQ(documents("out_title_document"), (Texts{"t0$", "t2$"}));
}

TEST_F(Parquet, NothingInItIsNoError) {
  write_parquet(directory_ / "in.parquet", {{"text", {}}});
  write_parquet_without_row_groups(directory_ / "none.parquet");
  for (const char* name : {"in.parquet", "none.parquet"}) {
    auto how = options();
    how.inputs = {directory_ / name};
    how.overwrite = true;
    const PrepareSummary summary = run(how);
    EXPECT_EQ(summary.keys[0].counts.documents, 0) << name;
    EXPECT_EQ(summary.progress.bytes, summary.progress.bytes_total) << name;
    EXPECT_EQ(documents(), Texts{}) << name;
  }
}

TEST_F(Parquet, TheFormatCanBeSaid) {
  write_parquet(directory_ / "blob", {{"text", {"a"}}});
  auto how = options();
  how.inputs = {directory_ / "blob"};
  how.format = InputFormat::json_lines;
  expect_error(ErrorKind::data, {"blob", "Parquet"}, [&] { run(how); });
  how.format = InputFormat::parquet;
  run(how);
  EXPECT_EQ(documents(), Texts{"a$"});
}

TEST_F(Parquet, GoesOnBehindTheLastFinishedRowGroup) {
  const ParquetColumn texts = corpus(65);
  for (const char* name : {"in0.parquet", "in1.parquet"}) write_parquet(directory_ / name, {texts});
  auto how = options();
  how.inputs = {directory_ / "in*.parquet"};
  how.numbered = true;
  run(how);
  const auto expected = outputs();
  for (int unit = 1; unit <= 14; ++unit) {
    for (const auto& file : expected) std::filesystem::remove(directory_ / file.first);
    how.threads = 1 + unit % 3;
    const pid_t child = ::fork();
    if (child == 0) {
      arm_failpoint("prepare.unit=exit@" + std::to_string(unit));
      run(how);
      std::_Exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    const PrepareSummary summary = run(how);
    EXPECT_EQ(outputs(), expected) << unit;
    const int64_t finished = unit - 1;  // six row groups of ten documents and one of five in each file
    EXPECT_EQ(summary.progress.documents, 130 - finished * 10 + (finished >= 7 ? 5 : 0)) << unit;
    EXPECT_EQ(summary.progress.bytes, summary.progress.bytes_total);
  }
}

TEST_F(Parquet, DocumentsAreNumberedThroughRowGroups) {
  const ParquetColumn texts = corpus(25);
  put("in.jsonl", json_lines(texts));
  write_parquet(directory_ / "in.parquet", {texts});
  write_parquet(directory_ / "next.parquet", {texts});
  const auto read = [&](const std::vector<std::string>& inputs) {
    std::vector<std::pair<int64_t, std::vector<int32_t>>> documents;
    read_documents(tokenizer_, {.inputs = inputs},
                   [&](const TextDocument& document) { documents.emplace_back(document.number, document.ids); });
    return documents;
  };
  const auto once = read({directory_ / "in.jsonl"});
  EXPECT_EQ(read({directory_ / "in.parquet"}), once);
  auto twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(read({directory_ / "in.parquet", directory_ / "next.parquet"}), twice);
}

TEST_F(Parquet, TokenizersLearnFromIt) {
  const ParquetColumn texts = corpus(25);
  put("in.jsonl", json_lines(texts));
  write_parquet(directory_ / "in.parquet", {texts});
  const auto learned = [&](const char* name) {
    BpeTrainer trainer;
    auto how = options();
    how.inputs = {directory_ / name};
    EXPECT_EQ(learn_words(trainer, how).documents, 25);
    return trainer.train(300).merges;
  };
  EXPECT_EQ(learned("in.parquet"), learned("in.jsonl"));
}

}  // namespace
}  // namespace megalith::data
