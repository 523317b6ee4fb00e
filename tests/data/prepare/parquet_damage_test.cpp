// What is wrong with Parquet files: refused with its place, or left out and counted; never a crash.

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "data/prepare/parquet_file.h"
#include "data/prepare/parquet_writer.h"
#include "data/prepare/prepare_fixture.h"
#include "data/prepare/read/source_check.h"

namespace megalith::data {
namespace {

class ParquetDamage : public PrepareTest {
 protected:
  PrepareOptions options() {
    PrepareOptions options;
    options.inputs = {directory_ / "in.parquet"};
    options.output_prefix = directory_ / "out";
    options.numbered = false;
    options.overwrite = true;
    options.encode.append_eod = true;
    options.warn = [this](const std::string& warning) { warnings_.push_back(warning); };
    return options;
  }

  // All lines of all row groups.
  std::string read_all() const {
    const auto file = open_parquet(directory_ / "in.parquet", {"text"});
    std::string text;
    for (int64_t group = 0; group < file->row_groups(); ++group) {
      const auto source = file->read(group, 1);
      std::array<char, 1000> buffer{};
      while (const size_t count = source->read(buffer)) text.append(buffer.data(), count);
    }
    return text;
  }

  // Four row groups of ten documents.
  std::string write_good(const ParquetLayout& layout = {}) const {
    ParquetColumn column{"text", {}};
    for (int i = 0; i < 40; ++i)
      column.values.emplace_back(i % 9 == 8 ? std::nullopt : std::optional(fmt::format("text {}", i)));
    write_parquet(directory_ / "in.parquet", {column}, layout);
    return read_bytes(directory_ / "in.parquet");
  }

  // Between places of a file that are tried.
  const size_t step_ = std::getenv("MEGALITH_LONG_TESTS") != nullptr ? 1 : 11;
  std::vector<std::string> warnings_;
};

TEST_F(ParquetDamage, BadTextIsRefusedByRowGroupAndRow) {
  ParquetColumn column{"text", {}};
  for (int i = 0; i < 25; ++i) column.values.emplace_back(i == 13 ? "caf\xe9" : i == 21 ? "\xe2\x82" : "good");
  write_parquet(directory_ / "in.parquet", {column});
  for (const int threads : {1, 3}) {
    auto how = options();
    how.threads = threads;
    expect_error(ErrorKind::data, {"in.parquet: row group 1, row 3: invalid UTF-8", "--on-error skip"},
                 [&] { run(how); });
    how.encode.on_error = OnError::skip;
    const BadLines skipped = run(how).keys[0].counts.skipped;
    EXPECT_EQ(skipped.examples(BadLine::invalid_utf8),
              (Texts{directory_ / "in.parquet: row group 1, row 3", directory_ / "in.parquet: row group 2, row 1"}));
    EXPECT_EQ(documents(), Texts(23, "good$"));
    how.encode.bad_text = BadText::replace;
    run(how);
    EXPECT_EQ(documents()[13], "caf\xEF\xBF\xBD$");
    EXPECT_EQ(documents()[21], "\xEF\xBF\xBD$");
  }
}

TEST_F(ParquetDamage, NullIsNoText) {
  write_good();
  auto how = options();
  expect_error(ErrorKind::data, {"in.parquet: row group 0, row 8", "null under the key \"text\""}, [&] { run(how); });
  how.encode.on_error = OnError::skip;
  EXPECT_EQ(run(how).keys[0].counts.skipped.count(BadLine::not_text), 4);
  EXPECT_EQ(documents().size(), 36u);
}

TEST_F(ParquetDamage, ColumnsThatAreNotTextAreRefusedByName) {
  write_parquet_without_text(directory_ / "in.parquet");
  const std::string has = "the file has id (INT64), raw (BYTE_ARRAY), tags (nested), meta (nested)";
  const auto refuse = [&](const std::string& key, const std::string& why) {
    auto how = options();
    how.encode.json_keys = {key};
    expect_error(ErrorKind::data, {"in.parquet: ", why, has}, [&] { run(how); });
    how.encode.json_keys = {"raw"};
    how.encode.keep = {{key, {"a"}}};
    expect_error(ErrorKind::data, {"in.parquet: ", has}, [&] { run(how); });
  };
  refuse("text", "no column \"text\"");
  refuse("id", "\"id\" is INT64, where string is expected");
  refuse("raw", "\"raw\" is BYTE_ARRAY");
  refuse("tags", "\"tags\" is nested");
  refuse("meta", "\"meta\" is nested");
  refuse("meta.source", "\"meta.source\" is inside of a column");
  write_parquet(directory_ / "in.parquet", {{"text", {"a"}}, {"text", {"b"}}});
  expect_error(ErrorKind::data, {"several columns \"text\""}, [&] { run(options()); });
}

TEST_F(ParquetDamage, ADamagedRowGroupIsRefusedOrLeftOut) {
  std::string bytes = write_good({.compression = "uncompressed"});
  bytes[bytes.find("text 15") + 5] = '7';  // what only the checksum of the page notices
  put("in.parquet", bytes);
  auto how = options();
  how.inputs.push_back(put("broken.parquet", "PAR1 and nothing else"));
  how.inputs.push_back(put("end.jsonl", line_of("end")));
  expect_error(ErrorKind::data, {"in.parquet: row group 0, row 8", "null"}, [&] { run(how); });
  how.encode.on_error = OnError::skip;
  const BadLines skipped = run(how).keys[0].counts.skipped;
  EXPECT_EQ(skipped.examples(BadLine::damaged_file),
            (Texts{directory_ / "in.parquet: row group 1", directory_ / "broken.parquet"}));
  EXPECT_EQ(documents().size(), 9u + 8 + 10 + 1);
  EXPECT_EQ(documents().back(), "end$");
  ASSERT_EQ(warnings_.size(), 2u);
  expect_parts(warnings_[0], {"in.parquet: row group 1: ", "checksum", "the row group is left out"});
  expect_parts(warnings_[1], {"broken.parquet: ", "the file is left out"});
  const auto made_from = nlohmann::ordered_json::parse(read_bytes(directory_ / "out_text_document.json"));
  EXPECT_EQ(compare_with_source(IndexedDataset(directory_ / "out_text_document"), made_from, tokenizer_, 2).problem,
            "");
}

TEST_F(ParquetDamage, WhatCannotBeReadIsAFaultOfTheMachine) {
  expect_error(ErrorKind::io, {"missing.parquet"}, [&] { open_parquet(directory_ / "missing.parquet", {"text"}); });
}

TEST_F(ParquetDamage, AFileThatIsCutOffIsRefusedByName) {
  const std::string bytes = write_good();
  for (size_t size = 0; size < bytes.size(); size += size + 20 < bytes.size() ? step_ : 1) {
    put("in.parquet", bytes.substr(0, size));
    expect_error(ErrorKind::data, {"in.parquet: this cannot be read as Parquet: "}, [&] { read_all(); });
  }
}

TEST_F(ParquetDamage, NoByteThatIsWrongIsACrash) {
  std::mt19937 random(3);
  int tried = 0;
  int refused = 0;
  const auto survive = [&](const std::string& bytes) {
    put("in.parquet", bytes);
    ++tried;
    try {
      read_all();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
      ++refused;
    }
  };
  for (const ParquetLayout& layout : {ParquetLayout{}, ParquetLayout{.dictionary_pages = false, .delta_encoded = true},
                                      ParquetLayout{.compression = "uncompressed", .second_pages = true}}) {
    const std::string good = write_good(layout);
    for (size_t at = 0; at + 12 < good.size(); at += step_) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(random());
      survive(bytes);
      // Something is left out, so that the footer points elsewhere.
      survive(good.substr(0, at) + good.substr(at + 1 + random() % 11));
    }
  }
  EXPECT_GT(refused, tried / 2);
}

}  // namespace
}  // namespace megalith::data
