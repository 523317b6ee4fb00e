#include "data/files/indexed_dataset.h"

#include <gtest/gtest.h>

#include "data/data_testing.h"

namespace megalith::data {
namespace {

// The parts of an index, to be damaged at will. As it stands: two sequences, {7, 8, 9} and {300, 5}, uint16.
struct Parts {
  std::string magic{"MMIDIDX\0\0", 9};
  uint64_t version = 1;
  uint8_t code = 8;
  uint64_t sequences = 2;
  uint64_t document_entries = 3;
  std::vector<int32_t> lengths = {3, 2};
  std::vector<int64_t> pointers = {0, 6};
  std::vector<int64_t> documents = {0, 1, 2};
  std::string tail;
  std::string tokens = bytes_of<uint16_t>({7, 8, 9, 300, 5});
  bool fairseq = false;

  std::string index() const {
    std::string bytes =
        magic + bytes_of<uint64_t>({version}) + static_cast<char>(code) + bytes_of<uint64_t>({sequences});
    if (!fairseq) bytes += bytes_of<uint64_t>({document_entries});
    bytes += bytes_of(lengths) + bytes_of(pointers);
    if (!fairseq) bytes += bytes_of(documents);
    return bytes + tail;
  }
};

class IndexedDatasetTest : public ::testing::Test {
 protected:
  std::string write(const Parts& parts) {
    write_bytes(directory_ / "set.idx", parts.index());
    write_bytes(directory_ / "set.bin", parts.tokens);
    return directory_ / "set";
  }

  void expect_refused(const Parts& parts, std::vector<std::string> pieces) {
    pieces.push_back(directory_ / "set");
    const std::string prefix = write(parts);
    expect_error(ErrorKind::data, pieces, [&prefix] { IndexedDataset{prefix}; });
  }

  std::vector<int32_t> read_all(const IndexedDataset& dataset, int64_t sequence) {
    std::vector<int32_t> tokens(static_cast<size_t>(dataset.length(sequence)));
    dataset.read(sequence, 0, tokens);
    return tokens;
  }

  void expect_usual_tokens(const IndexedDataset& dataset) {
    ASSERT_EQ(dataset.sequences(), 2);
    EXPECT_EQ(dataset.tokens(), 5);
    EXPECT_EQ(read_all(dataset, 0), (std::vector<int32_t>{7, 8, 9}));
    EXPECT_EQ(read_all(dataset, 1), (std::vector<int32_t>{300, 5}));
    std::vector<int32_t> piece(1);
    dataset.read(0, 2, piece);
    EXPECT_EQ(piece[0], 9);
  }

  TempDir directory_;
};

TEST_F(IndexedDatasetTest, ReadsTokens) {
  for (const bool map : {false, true}) {
    const IndexedDataset dataset(write({}), {.map_tokens = map});
    expect_usual_tokens(dataset);
    EXPECT_EQ(dataset.token_type(), TokenType::uint16);
    EXPECT_EQ(dataset.documents(), 2);
    EXPECT_EQ(dataset.document_begin(1), 1);
    EXPECT_EQ(dataset.name(), directory_ / "set");
  }
}

TEST_F(IndexedDatasetTest, ReadsEveryIntegerType) {
  const auto check = [this](uint8_t code, int64_t size, const std::string& tokens, TokenType type) {
    Parts parts;
    parts.code = code;
    parts.pointers = {0, 3 * size};
    parts.tokens = tokens;
    const IndexedDataset dataset(write(parts));
    EXPECT_EQ(dataset.token_type(), type);
    EXPECT_EQ(read_all(dataset, 0), (std::vector<int32_t>{7, 8, 9}));
    EXPECT_EQ(read_all(dataset, 1), (std::vector<int32_t>{100, 5}));
  };
  check(1, 1, bytes_of<uint8_t>({7, 8, 9, 100, 5}), TokenType::uint8);
  check(2, 1, bytes_of<int8_t>({7, 8, 9, 100, 5}), TokenType::int8);
  check(3, 2, bytes_of<int16_t>({7, 8, 9, 100, 5}), TokenType::int16);
  check(4, 4, bytes_of<int32_t>({7, 8, 9, 100, 5}), TokenType::int32);
  check(5, 8, bytes_of<int64_t>({7, 8, 9, 100, 5}), TokenType::int64);
  check(8, 2, bytes_of<uint16_t>({7, 8, 9, 100, 5}), TokenType::uint16);
  // DeepSpeed's codes, known by the size of a token.
  check(6, 2, bytes_of<uint16_t>({7, 8, 9, 100, 5}), TokenType::uint16);
  check(8, 8, bytes_of<uint64_t>({7, 8, 9, 100, 5}), TokenType::uint64);
}

TEST_F(IndexedDatasetTest, ReadsSequencesLongerThanItsBuffer) {
  Parts parts;
  std::vector<uint16_t> tokens(70000);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<uint16_t>(i);
  parts.lengths = {50000, 20000};
  parts.pointers = {0, 100000};
  parts.tokens = bytes_of(tokens);
  const IndexedDataset dataset(write(parts));
  std::vector<int32_t> read(40001);
  dataset.read(0, 9999, read);
  for (size_t i = 0; i < read.size(); ++i) ASSERT_EQ(read[i], static_cast<int32_t>(9999 + i));
}

TEST_F(IndexedDatasetTest, ReadsFairseqVariant) {
  Parts parts;
  parts.fairseq = true;
  const IndexedDataset dataset(write(parts));
  expect_usual_tokens(dataset);
  EXPECT_EQ(dataset.documents(), 2);
  EXPECT_EQ(dataset.document_begin(2), 2);
}

TEST_F(IndexedDatasetTest, ReadsAnEmptyDataset) {
  Parts parts;
  parts.sequences = 0;
  parts.lengths.clear();
  parts.pointers.clear();
  parts.document_entries = 1;
  parts.documents = {0};
  parts.tokens.clear();
  for (const bool map : {false, true}) EXPECT_EQ(IndexedDataset(write(parts), {.map_tokens = map}).sequences(), 0);
}

TEST_F(IndexedDatasetTest, RefusesForeignFiles) {
  Parts parts;
  parts.magic = std::string("TNTIDX\0\0", 8);
  expect_refused(parts, {"TNTIDX", "not supported"});
  parts.magic = "something";
  expect_refused(parts, {"set.idx", "MMIDIDX"});
  parts = {};
  parts.version = 2;
  expect_refused(parts, {"version 2"});
  parts = {};
  parts.tail = std::string(2, '\0');
  expect_refused(parts, {"multimodal"});
}

TEST_F(IndexedDatasetTest, RefusesFloatsByName) {
  Parts parts;
  parts.code = 6;
  parts.pointers = {0, 24};
  parts.tokens = std::string(40, '\0');
  expect_refused(parts, {"float64", "uint16", "40 bytes for 5 tokens"});
  parts.code = 7;
  parts.pointers = {0, 12};
  parts.tokens = std::string(20, '\0');
  expect_refused(parts, {"float32"});
  parts.code = 9;
  expect_refused(parts, {"unknown dtype code 9"});
}

TEST_F(IndexedDatasetTest, RefusesCountsThatTheFileCannotHold) {
  for (const uint64_t count : {uint64_t{4}, uint64_t{1} << 60, UINT64_MAX}) {
    Parts parts;
    parts.sequences = count;
    expect_refused(parts, {"set.idx", "damaged"});
    parts = {};
    parts.document_entries = count;
    expect_refused(parts, {"set.idx", "damaged"});
  }
  Parts parts;
  parts.document_entries = 2;
  expect_refused(parts, {"damaged"});
  parts.document_entries = 0;
  parts.documents.clear();
  expect_refused(parts, {"document array is empty"});
}

TEST_F(IndexedDatasetTest, RefusesEveryTruncationOfTheIndex) {
  const std::string prefix = write({});
  const std::string index = Parts().index();
  for (size_t size = 0; size < index.size(); ++size) {
    write_bytes(prefix + ".idx", index.substr(0, size));
    expect_error(ErrorKind::data, {"set."}, [&prefix] { IndexedDataset{prefix}; });
  }
}

TEST_F(IndexedDatasetTest, RefusesTokensThatDoNotFitTheIndex) {
  Parts parts;
  parts.tokens.pop_back();
  expect_refused(parts, {"set.bin", "truncated", "10 bytes", "has 9"});
  parts.tokens += "abc";
  expect_refused(parts, {"set.bin", "longer", "10 bytes", "has 12"});
}

TEST_F(IndexedDatasetTest, RefusesDamagedArrays) {
  Parts parts;
  parts.pointers = {0, 4};
  expect_refused(parts, {"sequence 1", "byte 4", "byte 6"});
  parts = {};
  parts.lengths = {6, -1};
  expect_refused(parts, {"sequence 1", "length -1"});
  parts = {};
  parts.documents = {0, 1, 1};
  expect_refused(parts, {"document array ends at sequence 1 of 2"});
  parts.documents = {0, 3, 2};
  expect_refused(parts, {"document 2"});
  parts.documents = {1, 1, 2};
  expect_refused(parts, {"first document"});
}

TEST_F(IndexedDatasetTest, RefusesIdsBeyond32Bits) {
  Parts parts;
  parts.code = 5;
  parts.pointers = {0, 24};
  parts.tokens = bytes_of<int64_t>({7, 8, 9, 1, int64_t{1} << 40});
  const IndexedDataset dataset(write(parts));
  expect_error(ErrorKind::data, {"sequence 1", "position 1"}, [&] { read_all(dataset, 1); });
}

TEST_F(IndexedDatasetTest, NamesWhatIsMissing) {
  write({});
  const auto open = [this](const std::string& name) {
    return [prefix = directory_ / name] { IndexedDataset{prefix}; };
  };
  expect_error(ErrorKind::user, {"sat.idx", "sat.bin", "neither exists", "same directory: set"}, open("sat"));
  expect_error(ErrorKind::user, {"without .bin"}, open("set.bin"));
  expect_error(ErrorKind::user, {"neither exists"}, open("elsewhere/set"));
  std::filesystem::remove(directory_ / "set.bin");
  expect_error(ErrorKind::user, {".bin is missing"}, open("set"));
}

}  // namespace
}  // namespace megalith::data
