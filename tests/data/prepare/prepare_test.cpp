#include "data/prepare/prepare.h"

#include <gtest/gtest.h>
#include <sys/file.h>

#include <nlohmann/json.hpp>

#include "core/failpoint.h"
#include "data/indexed_dataset_writer.h"
#include "data/prepare/prepare_testing.h"

namespace megalith::data {
namespace {

class PrepareTest : public testing::Test {
 protected:
  ~PrepareTest() override { disarm_failpoints(); }

  std::string put(const std::string& name, const std::string& content) {
    write_bytes(directory_ / name, content);
    return directory_ / name;
  }

  // One output `out_text_document`, as `tokenize` makes it.
  PrepareOptions single(const std::string& name, const std::string& content) {
    PrepareOptions options;
    options.inputs = {put(name, content)};
    options.output_prefix = directory_ / "out";
    options.numbered = false;
    options.encode.append_eod = true;
    return options;
  }

  PrepareOptions sharded(int files, const std::string& format = ".jsonl") {
    PrepareOptions options;
    for (int i = 0; i < files; ++i) {
      std::string text;
      for (int k = 0; k < 3 + i; ++k) text += line_of("file " + std::to_string(i) + " document " + std::to_string(k));
      if (format == ".jsonl.zst") text = zstd_of(text);
      if (format == ".jsonl.gz") text = gzip_of(text);
      put("in" + std::to_string(i) + format, text);
    }
    options.inputs = {directory_ / "in*"};
    options.output_prefix = directory_ / "out";
    options.encode.append_eod = true;
    return options;
  }

  PrepareSummary run(const PrepareOptions& options) { return prepare(tokenizer_, options); }
  Texts documents(const std::string& name = "out_text_document") { return documents_of(directory_ / name); }
  std::map<std::string, std::string> outputs() { return files_of(directory_.path(), "out"); }
  nlohmann::json sidecar(const std::string& name = "out_text_document") {
    return nlohmann::json::parse(read_bytes(directory_ / (name + ".json")));
  }

  TemporaryDirectory directory_;
  ByteTokenizer tokenizer_;
};

TEST_F(PrepareTest, ReadsJsonLines) {
  const PrepareSummary summary = run(single("in.jsonl",
                                            "{\"id\": 1, \"text\": \"one\\n\\u00e9\"}\r\n"
                                            "\n \r\n"
                                            "{\"text\": \"\"}\n"
                                            "{\"text\": \"first\", \"text\": \"last\"}\n"
                                            "{\"te\\u0078t\": \"no newline\"}"));
  EXPECT_EQ(documents(), (Texts{"one\n\xC3\xA9$", "", "last$", "no newline$"}));
  const OutputCounts& counts = summary.keys[0].counts;
  EXPECT_EQ(counts.documents, 4);
  EXPECT_EQ(counts.empty_documents, 1);
  EXPECT_EQ(counts.tokens, 7 + 5 + 11);
  EXPECT_EQ(counts.text_bytes, 6 + 4 + 10);
  EXPECT_EQ(summary.progress.bytes, std::ssize(read_bytes(directory_ / "in.jsonl")));
  EXPECT_EQ(names_of(outputs()), (Texts{"out_text_document.bin", "out_text_document.idx", "out_text_document.json"}));
}

TEST_F(PrepareTest, BytesAreThoseOfTheFormat) {
  run(single("in.jsonl", line_of("ab") + line_of("") + line_of("c")));
  EXPECT_EQ(read_bytes(directory_ / "out_text_document.bin"), bytes_of<uint16_t>({'a', 'b', 256, 'c', 256}));
  EXPECT_EQ(read_bytes(directory_ / "out_text_document.idx"),
            std::string("MMIDIDX\0\0", 9) + bytes_of<uint64_t>({1}) + '\x08' + bytes_of<uint64_t>({2, 4}) +
                bytes_of<int32_t>({3, 2}) + bytes_of<int64_t>({0, 6}) + bytes_of<int64_t>({0, 1, 1, 2}));
}

// A tokenizer of any size: ids are lengths of lines.
class LengthTokenizer : public ByteTokenizer {
 public:
  explicit LengthTokenizer(int64_t vocab) : vocab_(vocab) {}
  int64_t vocab_size() const override { return vocab_; }
  int32_t eod() const override { return static_cast<int32_t>(vocab_ - 1); }
  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    if (!text.empty()) ids.push_back(static_cast<int32_t>(vocab_ - static_cast<int64_t>(text.size())));
  }

 private:
  int64_t vocab_;
};

TEST_F(PrepareTest, TokenTypesFollowTheVocabulary) {
  for (const int64_t vocab : {65'499, 65'500, 65'536, 65'537}) {
    const LengthTokenizer tokenizer(vocab);
    auto options = single("in.jsonl", line_of("a") + line_of("bcd") + line_of(""));
    options.overwrite = true;
    prepare(tokenizer, options);
    IndexedDatasetWriter expected(directory_ / "expected", vocab);
    const auto id = [vocab](int64_t below) { return static_cast<int32_t>(vocab - below); };
    expected.add_document(std::vector<int32_t>{id(1), id(1)});
    expected.add_document(std::vector<int32_t>{id(3), id(1)});
    expected.add_document({});
    expected.finish();
    for (const char* suffix : {".bin", ".idx"}) {
      EXPECT_EQ(read_bytes(directory_ / ("out_text_document" + std::string(suffix))),
                read_bytes(directory_ / ("expected" + std::string(suffix))))
          << vocab << suffix;
    }
    EXPECT_EQ(sidecar()["dtype"], vocab < 65'500 ? "uint16" : "int32");
  }
}

TEST_F(PrepareTest, WritesOnePairPerKey) {
  auto options = single("in.jsonl", "{\"a\": \"x\", \"b\": {\"c\": \"y\"}}\n{\"b\": {\"c\": \"\"}, \"a\": \"z\"}\n");
  options.encode.json_keys = {"a", "b.c"};
  options.encode.append_eod = false;
  run(options);
  EXPECT_EQ(documents("out_a_document"), (Texts{"x", "z"}));
  EXPECT_EQ(documents("out_b.c_document"), (Texts{"y", ""}));
}

TEST_F(PrepareTest, ReadsTextByFileAndByBlankLines) {
  auto options = single("one.txt", "a\n\nb\n");
  options.inputs.push_back(put("two.txt.gz", gzip_of("\xFF\n")));
  run(options);
  EXPECT_EQ(documents(), (Texts{"a\n\nb\n$", "\xFF\n$"}));
  for (const int64_t batch : {1, 4, 1000}) {
    options = single("in.dat", "\n \na\nb\n\n\t\n\nc  \n\r\nd");
    options.overwrite = true;
    options.format = InputFormat::text;
    options.text_documents = TextDocuments::blank_lines;
    options.batch_bytes = batch;
    run(options);
    EXPECT_EQ(documents(), (Texts{"a\nb$", "c  $", "d$"}));
  }
}

TEST_F(PrepareTest, BeginsDocumentsWithATokenWhenAsked) {
  auto options = single("in.jsonl", line_of("a") + line_of(""));
  options.encode.bos = '^';
  run(options);
  EXPECT_EQ(documents(), (Texts{"^a$", ""}));
  EXPECT_EQ(sidecar()["bos"], '^');
}

TEST_F(PrepareTest, ReadsMixedFilesInNaturalOrderIntoShards) {
  PrepareOptions options;
  put("c10.jsonl", line_of("ten"));
  put("c2.jsonl.zst", zstd_of(line_of("two")) + skippable_frame("x") + zstd_of(line_of("two again")));
  put("c9.jsonl.gz", gzip_of(line_of("nine")) + gzip_of(line_of("nine again")));
  put("c1.jsonl", "");
  put("c3.txt", "three");
  options.inputs = {directory_ / "c*"};
  options.output_prefix = directory_ / "out/my-gpt3";
  options.files_per_shard = 2;
  const PrepareSummary summary = run(options);
  EXPECT_EQ(summary.shards, 3);
  EXPECT_EQ(documents("out/my-gpt3_00_text_document"), (Texts{"two", "two again"}));
  EXPECT_EQ(documents("out/my-gpt3_01_text_document"), (Texts{"three", "nine", "nine again"}));
  EXPECT_EQ(documents("out/my-gpt3_02_text_document"), (Texts{"ten"}));
  EXPECT_EQ(summary.keys[0].counts.documents, 6);
  const auto manifest = nlohmann::json::parse(read_bytes(directory_ / "out/my-gpt3.manifest.json"));
  EXPECT_EQ(manifest["shards"].size(), 3u);
  EXPECT_EQ(manifest["shards"][0]["inputs"][1]["path"], directory_ / "c2.jsonl.zst");
  // Nothing but outputs and the manifest stays.
  EXPECT_EQ(files_of(directory_.path() / "out").size(), 3u * 3 + 1);
}

TEST_F(PrepareTest, CutsShardsEvenly) {
  auto options = sharded(7);
  options.shards = 3;
  run(options);
  EXPECT_EQ(documents("out_00_text_document").size(), 3u + 4);
  EXPECT_EQ(documents("out_01_text_document").size(), 5u + 6);
  EXPECT_EQ(documents("out_02_text_document").size(), 7u + 8 + 9);
  options.shards = 8;
  expect_error(ErrorKind::user, {"8 shards", "7 files"}, [&] { run(options); });
}

TEST_F(PrepareTest, NumbersGetAsManyDigitsAsNeeded) {
  auto options = sharded(101);
  options.files_per_shard = 1;
  run(options);
  EXPECT_EQ(documents("out_007_text_document").size(), 10u);
  EXPECT_EQ(documents("out_100_text_document").size(), 103u);
}

TEST_F(PrepareTest, ThreadsBatchesAndWorkersDoNotChangeTheBytes) {
  auto options = sharded(9, ".jsonl.zst");
  options.shards = 4;
  run(options);
  const auto expected = outputs();
  ASSERT_EQ(expected.size(), 4u * 3 + 1);
  struct Case {
    int threads;
    int64_t workers;
    int64_t batch;
  };
  for (const auto& [threads, workers, batch] :
       {Case{1, 1, 1}, Case{2, 1, 100}, Case{64, 1, 1}, Case{5, 3, 1 << 20}, Case{2, 3, 1}, Case{64, 1, 100}}) {
    for (const auto& file : expected) std::filesystem::remove(directory_ / file.first);
    options.threads = threads;
    options.batch_bytes = batch;
    for (int64_t i = 0; i < workers; ++i) {
      options.worker = {i, workers};
      run(options);
    }
    ASSERT_EQ(outputs(), expected) << threads << " " << workers << " " << batch;
  }
}

TEST_F(PrepareTest, NamesTheBadLineAndLeavesNothing) {
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

TEST_F(PrepareTest, SkipsAndCountsBadLinesWhenAsked) {
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
    EXPECT_EQ(sidecar()["skipped"]["missing key"]["first"][0], directory_ / "in.jsonl:4");
  }
}

TEST_F(PrepareTest, ReplacesBadTextWhenAsked) {
  auto options = single("in.jsonl", line_of("a\x80z") + line_of("\\ud800"));
  options.encode.bad_text = BadText::replace;
  run(options);
  EXPECT_EQ(documents(), (Texts{"a\xEF\xBF\xBDz$", "\xEF\xBF\xBD$"}));
}

TEST_F(PrepareTest, ADamagedFileIsRefusedOrLeftOutWhole) {
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

TEST_F(PrepareTest, FiltersDocuments) {
  auto options = single("in.jsonl",
                        "{\"text\":\"a\",\"meta\":{\"set\":\"C4\"}}\n{\"text\":\"b\",\"meta\":{\"set\":\"Book\"}}\n"
                        "{\"text\":\"c\",\"meta\":{}}\n{\"meta\":{\"set\":\"Wiki\"},\"text\":\"d\"}\n");
  options.encode.keep = {parse_field_filter("meta.set=C4,Wiki")};
  EXPECT_EQ(run(options).keys[0].counts.filtered, 2);
  EXPECT_EQ(documents(), (Texts{"a$", "d$"}));
}

TEST_F(PrepareTest, NoDocumentsMakeAnEmptyOutputAndAWarning) {
  auto options = single("in.jsonl", "\n" + line_of("a"));
  options.encode.keep = {parse_field_filter("x=1")};
  std::vector<std::string> warnings;
  options.warn = [&](const std::string& warning) { warnings.push_back(warning); };
  run(options);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("no documents"), std::string::npos);
  EXPECT_EQ(read_bytes(directory_ / "out_text_document.bin"), "");
  EXPECT_EQ(read_bytes(directory_ / "out_text_document.idx"), std::string("MMIDIDX\0\0", 9) + bytes_of<uint64_t>({1}) +
                                                                  '\x08' + bytes_of<uint64_t>({0, 1}) +
                                                                  bytes_of<int64_t>({0}));
}

TEST_F(PrepareTest, AByteOrderMarkIsLeftOutWithAWarning) {
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

TEST_F(PrepareTest, LongDocuments) {
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

TEST_F(PrepareTest, ADocumentOf200Megabytes) {
  const LengthTokenizer tokenizer(300'000'000);
  const std::string text(200'000'000, 'x');
  auto options = single("in.jsonl.zst", zstd_of(line_of("a") + line_of(text) + line_of("b")));
  options.threads = 2;
  const PrepareSummary summary = prepare(tokenizer, options);
  EXPECT_EQ(summary.keys[0].counts.documents, 3);
  EXPECT_EQ(summary.keys[0].counts.text_bytes, 200'000'002);
  EXPECT_EQ(read_bytes(directory_ / "out_text_document.bin"),
            bytes_of<int32_t>({299'999'999, 299'999'999, 100'000'000, 299'999'999, 299'999'999, 299'999'999}));
}

TEST_F(PrepareTest, OverwritesOnlyWhenAsked) {
  auto options = single("in.txt", "old");
  EXPECT_EQ(run(options).shards_before, 0);
  EXPECT_EQ(run(options).shards_before, 1);  // the same again: nothing to do
  EXPECT_EQ(run(options).keys[0].counts.documents, 1);
  put("in.txt", "newer");
  expect_error(ErrorKind::user, {"out_text_document.bin exists", "--overwrite"}, [&] { run(options); });
  EXPECT_EQ(documents(), Texts{"old$"});
  options.overwrite = true;
  run(options);
  EXPECT_EQ(documents(), Texts{"newer$"});
  // Files of somebody else.
  options.overwrite = false;
  std::filesystem::remove(directory_ / "out_text_document.json");
  expect_error(ErrorKind::user, {"out_text_document.bin exists", "sidecar"}, [&] { run(options); });
}

TEST_F(PrepareTest, ExistingIsNotDone) {
  auto options = single("in.txt", "text");
  run(options);
  write_bytes(directory_ / "out_text_document.bin", "half");
  expect_error(ErrorKind::user, {"sizes"}, [&] { run(options); });
  options.overwrite = true;
  run(options);
  EXPECT_EQ(documents(), Texts{"text$"});
}

TEST_F(PrepareTest, AnotherConfigurationIsRefusedByTheManifest) {
  auto options = sharded(4);
  options.shards = 2;
  run(options);
  options.encode.append_eod = false;
  expect_error(ErrorKind::user, {"out.manifest.json", "append_eod"}, [&] { run(options); });
  options.encode.append_eod = true;
  options.shards = 4;
  expect_error(ErrorKind::user, {"4 files in 2 shards"}, [&] { run(options); });
  options.shards = 2;
  put("in4.jsonl", line_of("new"));
  expect_error(ErrorKind::user, {"5 files in 2 shards"}, [&] { run(options); });
  std::filesystem::remove(directory_ / "in4.jsonl");
  put("in3.jsonl", line_of("changed"));
  expect_error(ErrorKind::user, {"in3.jsonl"}, [&] { run(options); });
  options.overwrite = true;
  EXPECT_EQ(run(options).shards_before, 1);  // the first shard is as it was
  EXPECT_EQ(documents("out_01_text_document").back(), "changed$");
}

TEST_F(PrepareTest, AFileThatChangesUnderwayIsAnError) {
  auto options = sharded(3);
  bool changed = false;
  options.progress = [&](const PrepareProgress&) {
    if (!changed) put("in2.jsonl", line_of("changed"));
    changed = true;
  };
  expect_error(ErrorKind::data, {"in2.jsonl", "changed"}, [&] { run(options); });
}

TEST_F(PrepareTest, TwoProcessesOnOneOutputAreDetected) {
  const auto options = single("in.txt", "text");
  const File journal = File::open_for_appending(directory_ / "out_text_document.journal");
  ASSERT_EQ(::flock(journal.descriptor(), LOCK_EX | LOCK_NB), 0);
  expect_error(ErrorKind::user, {"another process", "out_text_document.journal"}, [&] { run(options); });
}

TEST_F(PrepareTest, RefusesWhatItCannotDo) {
  auto options = single("in.parquet", "?");
  expect_error(ErrorKind::user, {"in.parquet", "format"}, [&] { run(options); });
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
  expect_error(ErrorKind::io, {"in.txt"}, [&] { run(options); });
}

TEST_F(PrepareTest, AFullDiskLeavesNothingWrongAndIsOvercome) {
  auto options = sharded(3);
  run(options);
  const auto expected = outputs();
  for (const auto& file : expected) std::filesystem::remove(directory_ / file.first);
  for (const char* place : {"file.write", "file.rename", "prepare.unit", "prepare.commit"}) {
    for (int at = 1;; ++at) {
      arm_failpoint(std::string(place) + "=io@" + std::to_string(at));
      bool failed = false;
      try {
        run(options);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::io);
        failed = true;
      }
      disarm_failpoints();
      run(options);
      ASSERT_EQ(outputs(), expected) << place << " " << at;
      for (const auto& file : expected) std::filesystem::remove(directory_ / file.first);
      if (!failed) break;
    }
  }
}

TEST_F(PrepareTest, ResumesBehindFinishedFilesAndDistrustsDamagedOnes) {
  auto options = sharded(5);
  run(options);
  const auto expected = outputs();
  const auto interrupt = [&] {
    for (const auto& file : expected) std::filesystem::remove(directory_ / file.first);
    arm_failpoint("prepare.unit=io@4");
    EXPECT_THROW(run(options), Error);
    disarm_failpoints();
    EXPECT_EQ(names_of(outputs()), (Texts{"out.manifest.json", "out_00_text_document.bin.part",
                                          "out_00_text_document.journal", "out_00_text_document.lengths.part"}));
  };
  interrupt();
  PrepareSummary summary = run(options);
  EXPECT_EQ(outputs(), expected);
  EXPECT_EQ(summary.progress.documents, 6 + 7);  // of the last two files
  EXPECT_EQ(summary.keys[0].counts.documents, 3 + 4 + 5 + 6 + 7);
  EXPECT_EQ(summary.progress.bytes, summary.progress.bytes_total);
  EXPECT_GT(summary.progress.bytes_resumed, 0);
  const auto damage = [&](const std::string& suffix, int64_t at, bool cut) {
    interrupt();
    const std::string path = directory_ / ("out_00_text_document" + suffix);
    std::string bytes = read_bytes(path);
    if (at < 0) at += std::ssize(bytes);
    if (cut) bytes.resize(static_cast<size_t>(at));
    if (!cut) bytes[static_cast<size_t>(at)] = static_cast<char>(bytes[static_cast<size_t>(at)] ^ 1);
    write_bytes(path, bytes);
    run(options);
    EXPECT_EQ(outputs(), expected) << suffix << at << cut;
  };
  for (const char* suffix : {".bin.part", ".lengths.part", ".journal"}) {
    damage(suffix, 5, false);
    damage(suffix, -9, false);
    damage(suffix, 11, true);
    damage(suffix, -3, true);
    damage(suffix, 0, true);
  }
}

TEST_F(PrepareTest, ReportsProgress) {
  auto options = sharded(5, ".jsonl.gz");
  options.batch_bytes = 50;
  std::vector<PrepareProgress> reports;
  options.progress = [&](const PrepareProgress& progress) { reports.push_back(progress); };
  run(options);
  ASSERT_GT(reports.size(), 5u);
  for (size_t i = 1; i < reports.size(); ++i) {
    EXPECT_GE(reports[i].bytes, reports[i - 1].bytes);
    EXPECT_LE(reports[i].bytes, reports[i].bytes_total);
    EXPECT_GE(reports[i].seconds_left(), 0.0);
  }
  EXPECT_EQ(reports.back().bytes, reports.back().bytes_total);
  EXPECT_EQ(reports.back().documents, 3 + 4 + 5 + 6 + 7);
}

TEST_F(PrepareTest, TheSidecarSaysWhatItIs) {
  run(single("in.jsonl", line_of("a")));
  const auto json = sidecar();
  EXPECT_EQ(json["format"], "megalith.dataset/1");
  EXPECT_EQ(json["tokenizer"]["type"], "ByteTokenizer");
  EXPECT_EQ(json["tokenizer"]["eod"], 256);
  EXPECT_EQ(json["append_eod"], true);
  EXPECT_EQ(json["documents"], 1);
  EXPECT_EQ(json["tokens"], 2);
  EXPECT_EQ(json["bin"]["bytes"], 4);
  EXPECT_EQ(json["bin"]["xxh3"].get<std::string>().size(), 16u);
  EXPECT_EQ(json["inputs"][0]["path"], directory_ / "in.jsonl");
}

}  // namespace
}  // namespace megalith::data
