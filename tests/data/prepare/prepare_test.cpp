#include "data/prepare/prepare.h"

#include <gtest/gtest.h>

#include "data/prepare/prepare_fixture.h"
#include "data/write_dataset.h"

namespace megalith::data {
namespace {

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

TEST_F(PrepareTest, TokenTypesFollowTheVocabulary) {
  for (const int64_t vocab : {65'499, 65'500, 65'536, 65'537}) {
    const LengthTokenizer tokenizer(vocab);
    auto options = single("in.jsonl", line_of("a") + line_of("bcd") + line_of(""));
    options.overwrite = true;
    prepare(tokenizer, options);
    const auto id = [vocab](int64_t below) { return static_cast<int32_t>(vocab - below); };
    test::write_dataset(directory_ / "expected", vocab, {{id(1), id(1)}, {id(3), id(1)}, {}});
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
  options.inputs.push_back(put("two.txt.gz", gzip_of("\u00e9\n")));
  run(options);
  EXPECT_EQ(documents(), (Texts{"a\n\nb\n$", "\u00e9\n$"}));
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
  EXPECT_EQ(sidecar()["config"]["bos"], '^');
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
  EXPECT_EQ(manifest["shards"][0]["inputs"][1]["path"], (directory_ / "c2.jsonl.zst").string());
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

TEST_F(PrepareTest, FiltersDocuments) {
  auto options = single("in.jsonl",
                        "{\"text\":\"a\",\"meta\":{\"set\":\"C4\"}}\n{\"text\":\"b\",\"meta\":{\"set\":\"Book\"}}\n"
                        "{\"text\":\"c\",\"meta\":{}}\n{\"meta\":{\"set\":\"Wiki\"},\"text\":\"d\"}\n");
  options.encode.keep = {parse_field_filter("meta.set=C4,Wiki")};
  EXPECT_EQ(run(options).keys[0].counts.filtered, 2);
  EXPECT_EQ(documents(), (Texts{"a$", "d$"}));
}

TEST_F(PrepareTest, NoDocumentsMakeAnEmptyOutputAndAWarning) {
  auto options = single("in.jsonl", "\n{\"text\": \"a\"}\n");
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
  EXPECT_EQ(json["config"]["tokenizer"]["type"], "ByteTokenizer");
  EXPECT_EQ(json["config"]["tokenizer"]["eod"], 256);
  EXPECT_EQ(json["config"]["append_eod"], true);
  EXPECT_EQ(json["documents"], 1);
  EXPECT_EQ(json["tokens"], 2);
  EXPECT_EQ(json["bin"]["bytes"], 4);
  EXPECT_EQ(json["bin"]["xxh3"].get<std::string>().size(), 16u);
  EXPECT_EQ(json["inputs"][0]["path"], (directory_ / "in.jsonl").string());
}

}  // namespace
}  // namespace megalith::data
