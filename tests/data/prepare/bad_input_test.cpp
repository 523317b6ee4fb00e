// What is wrong with inputs: refused with its place, or left out and counted.

#include <gtest/gtest.h>

#include "data/prepare/prepare_fixture.h"

namespace megalith::data {
namespace {

using PrepareBadInput = PrepareTest;

TEST_F(PrepareBadInput, NamesTheBadLineAndLeavesNothing) {
  const auto expect = [this](const std::string& line, const std::vector<std::string>& pieces) {
    for (const int threads : {1, 4}) {
      auto options = single("in.jsonl", line_of("good") + "\r\n" + line + "\n" + line_of("good"));
      options.threads = threads;
      options.batch_bytes = threads == 1 ? 1 : 1 << 20;
      auto all = pieces;
      all.insert(all.end(), {"in.jsonl:3:", "byte 19"});
      expect_error(ErrorKind::data, all, [&] { run(options); });
      EXPECT_TRUE(outputs().empty());
    }
  };
  expect("{\"text\": \"cut", {"not a JSON object", "string does not end"});
  expect("[1]", {"not a JSON object"});
  expect("{\"text\": \"a\"} {\"text\": \"b\"}", {"not a JSON object"});
  expect("{\n\"text\": \"a\"\n}", {"not a JSON object"});
  expect("{\"text\": \"\x80\"}", {"invalid UTF-8"});
  expect("{\"text\": \"\\ud800\"}", {"surrogate"});
  expect("{\"other\": \"a\"}", {"nothing under the key \"text\""});
  expect("{\"text\": null}", {"null under the key \"text\""});
  expect("{\"text\": [\"a\"]}", {"array under the key \"text\""});
}

TEST_F(PrepareBadInput, SkipsAndCountsBadLinesWhenAsked) {
  auto options = single("in.jsonl", "garbage\n" + line_of("a") + "{\"text\":1}\n{}\n" + line_of("\x80") + "[]\n" +
                                        line_of("b") + "{\"text\":\"cut");
  options.encode.on_error = OnError::skip;
  for (const int64_t batch : {1, 1 << 20}) {
    options.batch_bytes = batch;
    options.overwrite = true;
    std::filesystem::remove(directory_ / "out_text_document.json");
    const PrepareSummary summary = run(options);
    EXPECT_EQ(documents(), (Texts{"a$", "b$"}));
    const BadLines& skipped = summary.keys[0].counts.skipped;
    EXPECT_EQ(skipped.total(), 6);
    EXPECT_EQ(skipped.count(BadLine::not_json), 3);
    EXPECT_EQ(skipped.examples(BadLine::not_json),
              (Texts{directory_ / "in.jsonl:1", directory_ / "in.jsonl:6", directory_ / "in.jsonl:8"}));
    EXPECT_EQ(skipped.count(BadLine::not_text), 1);
    EXPECT_EQ(skipped.count(BadLine::missing_key), 1);
    EXPECT_EQ(skipped.examples(BadLine::invalid_utf8), Texts{directory_ / "in.jsonl:5"});
    EXPECT_EQ(sidecar()["skipped"]["missing key"]["first"][0], (directory_ / "in.jsonl:4").string());
  }
}

TEST_F(PrepareBadInput, ReplacesBadTextWhenAsked) {
  auto options = single("in.jsonl", line_of("a\x80z") + line_of("\\ud800"));
  options.encode.bad_text = BadText::replace;
  run(options);
  EXPECT_EQ(documents(), (Texts{"a\xEF\xBF\xBDz$", "\xEF\xBF\xBD$"}));
}

TEST_F(PrepareBadInput, TextThatIsNotUtf8IsRefusedByLineAndByte) {
  auto options = single("in.txt", "first\n\ncaf\xe9 au lait\n\nlast\n");
  for (const TextDocuments cut : {TextDocuments::whole_file, TextDocuments::blank_lines}) {
    options.text_documents = cut;
    expect_error(ErrorKind::data, {"in.txt:3:", "byte 10:", "invalid UTF-8"}, [&] { run(options); });
  }
  options.encode.bad_text = BadText::replace;
  run(options);
  EXPECT_EQ(documents(), (Texts{"first$", "caf\xEF\xBF\xBD au lait$", "last$"}));
}

TEST_F(PrepareBadInput, Utf16IsCalledByItsName) {
  for (const std::string text : {"\xFF\xFEh", "\xFE\xFF"}) {
    expect_error(ErrorKind::data, {"in.txt", "looks like UTF-16", "iconv"}, [&] { run(single("in.txt", text)); });
    expect_error(ErrorKind::data, {"in.jsonl", "looks like UTF-16"}, [&] { run(single("in.jsonl", text)); });
  }
}

TEST_F(PrepareBadInput, ADamagedFileIsRefusedOrLeftOutWhole) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += line_of("document number " + std::to_string(i * 7919));
  auto options = sharded(2, ".jsonl.zst");
  put("in1.jsonl.zst", zstd_of(text).substr(0, zstd_of(text).size() - 5));
  put("in2.jsonl.zst", zstd_of(line_of("behind it")));
  options.batch_bytes = 1000;
  for (const int threads : {1, 3}) {
    options.threads = threads;
    options.encode.on_error = OnError::fail;
    options.overwrite = true;
    expect_error(ErrorKind::data, {"in1.jsonl.zst", "byte", "cut off"}, [&] { run(options); });
    options.encode.on_error = OnError::skip;
    const PrepareSummary summary = run(options);
    EXPECT_EQ(documents("out_00_text_document"),
              (Texts{"file 0 document 0$", "file 0 document 1$", "file 0 document 2$", "behind it$"}));
    EXPECT_EQ(summary.keys[0].counts.documents, 4);
    EXPECT_EQ(summary.keys[0].counts.tokens, 3 * 18 + 10);
    EXPECT_EQ(summary.keys[0].counts.skipped.count(BadLine::damaged_file), 1);
  }
}

TEST_F(PrepareBadInput, AByteOrderMarkIsLeftOutWithAWarning) {
  auto options = single("in.jsonl", "\xEF\xBB\xBF" + line_of("a") +
                                        line_of("\xEF\xBB\xBF"
                                                "b"));
  std::vector<std::string> warnings;
  options.warn = [&](const std::string& warning) { warnings.push_back(warning); };
  run(options);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("in.jsonl"), std::string::npos);
  EXPECT_EQ(documents(), (Texts{"a$",
                                "\xEF\xBB\xBF"
                                "b$"}));
}

TEST_F(PrepareBadInput, MoreTokensThanASequenceCanCount) {
  auto options = single("in.jsonl", line_of("abc") + line_of("abcd") + line_of("ab"));
  options.encode.max_document_tokens = 4;
  expect_error(ErrorKind::data, {"in.jsonl:2:", "too many tokens", "5 in one document", "count 4"},
               [&] { run(options); });
  options.encode.on_error = OnError::skip;
  EXPECT_EQ(run(options).keys[0].counts.skipped.count(BadLine::too_many_tokens), 1);
  EXPECT_EQ(documents(), (Texts{"abc$", "ab$"}));
}

TEST_F(PrepareBadInput, RefusesWhatItCannotDo) {
  auto options = single("in.dat", "?");
  expect_error(ErrorKind::user, {"in.dat", "format"}, [&] { run(options); });
  options = single("in.txt", "?");
  options.encode.json_keys = {"a", "b"};
  expect_error(ErrorKind::user, {"plain text"}, [&] { run(options); });
  options = single("in.txt", "?");
  options.encode.keep = {parse_field_filter("a=b")};
  expect_error(ErrorKind::user, {"plain text"}, [&] { run(options); });
  options = single("in.txt", "?");
  options.worker = {2, 2};
  expect_error(ErrorKind::user, {"worker 2 of 2"}, [&] { run(options); });
  options = single("in.txt", "?");
  options.output_prefix = directory_ / "in.txt/out";
  expect_error(ErrorKind::user, {"in.txt", "not a directory"}, [&] { run(options); });
}

TEST_F(PrepareBadInput, AFileThatChangesUnderwayIsAnError) {
  auto options = sharded(3);
  bool changed = false;
  options.progress = [&](const PrepareProgress&) {
    if (!changed) put("in2.jsonl", line_of("changed"));
    changed = true;
  };
  expect_error(ErrorKind::data, {"in2.jsonl", "changed"}, [&] { run(options); });
}

TEST_F(PrepareBadInput, LongDocuments) {
  const std::string text(3'000'001, 'x');
  auto options = single("in.jsonl", line_of("a") + line_of(text) + line_of("b"));
  run(options);
  EXPECT_EQ(documents(), (Texts{"a$", text + "$", "b$"}));
  options.encode.max_document_bytes = 1'000'000;
  options.overwrite = true;
  expect_error(ErrorKind::data, {"in.jsonl:2:", "byte 14", "too long"}, [&] { run(options); });
  options.encode.on_error = OnError::skip;
  for (const int64_t batch : {1000, 10'000'000}) {
    options.batch_bytes = batch;
    EXPECT_EQ(run(options).keys[0].counts.skipped.count(BadLine::too_long), 1);
    EXPECT_EQ(documents(), (Texts{"a$", "b$"}));
  }
}

}  // namespace
}  // namespace megalith::data
