#include "checkpoint/format/safetensors.h"

#include <gtest/gtest.h>

#include <numeric>

#include "checkpoint/fixtures.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::checkpoint {
namespace {

using testing::TempDir;

std::string file_of(const std::string& header, const std::string& data = "") {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + data;
}

SafetensorsReader reader_of(const std::string& bytes) {
  return SafetensorsReader("memory", static_cast<int64_t>(bytes.size()),
                           [bytes](int64_t offset, std::span<std::byte> into) {
                             std::memcpy(into.data(), bytes.data() + offset, into.size());
                           });
}

TEST(Safetensors, RoundTrip) {
  const TempDir directory;
  std::vector<bfloat16> small(6);
  for (size_t i = 0; i < small.size(); ++i) small[i] = bfloat16(static_cast<float>(i));
  std::vector<float> large(20000);
  std::iota(large.begin(), large.end(), 0.0f);
  std::vector<int64_t> one = {-5};
  FileDigests written;
  {
    File file = File::create_new(directory / "a.safetensors");
    const std::vector<TensorView> views = {{"small", Tensor(small.data(), DType::bf16, {2, 3})},
                                           {"large \"quoted\" ü", Tensor(large.data(), DType::f32, {100, 200})},
                                           {"columns", Tensor(large.data(), DType::f32, {100, 200}).slice_cols(10, 13)},
                                           {"empty", Tensor(large.data(), DType::f32, {0, 4})},
                                           {"one", Tensor(one.data(), DType::i64, {1})}};
    written = write_safetensors(file, views, {{"made by", "test"}}, 4096);
  }
  const std::string bytes = test::bytes_of(directory / "a.safetensors");
  EXPECT_EQ(written.bytes, static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(written.whole, digest_of_chunks(written.chunks));
  ASSERT_EQ(static_cast<int64_t>(written.chunks.size()), ceil_div(written.bytes, 4096));
  for (size_t i = 0; i < written.chunks.size(); ++i)
    EXPECT_EQ(written.chunks[i], digest_of(bytes.substr(i * 4096, 4096)));

  const SafetensorsReader reader = SafetensorsReader::open(directory / "a.safetensors");
  EXPECT_EQ(reader.metadata().at("made by"), "test");
  ASSERT_EQ(reader.entries().size(), 5u);
  EXPECT_EQ(reader.entries().front().name, "one");  // the widest elements first
  EXPECT_EQ(reader.entries().front().begin % 8, 0);
  EXPECT_EQ(reader.find("small")->type, "BF16");
  EXPECT_EQ(reader.find("absent"), nullptr);

  std::vector<bfloat16> small_again(6);
  reader.read("small", Tensor(small_again.data(), DType::bf16, {2, 3}));
  EXPECT_EQ(std::memcmp(small.data(), small_again.data(), 12), 0);
  std::vector<float> large_again(20000);
  reader.read("large \"quoted\" ü", Tensor(large_again.data(), DType::f32, {100, 200}));
  EXPECT_EQ(large, large_again);
  std::vector<float> strided(500, -1.0f);
  reader.read("columns", Tensor(strided.data(), DType::f32, {100, 5}).slice_cols(1, 4));
  for (size_t row = 0; row < 100; ++row) {
    EXPECT_EQ(strided[row * 5], -1.0f);
    for (size_t col = 0; col < 3; ++col) EXPECT_EQ(strided[row * 5 + 1 + col], large[row * 200 + 10 + col]);
  }
}

TEST(Safetensors, RefusesTheWrongTypeOrShape) {
  const SafetensorsReader reader =
      reader_of(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678"));
  float memory[4];
  for (const Tensor& wrong :
       {Tensor(memory, DType::i32, {2}), Tensor(memory, DType::f32, {1, 2}), Tensor(memory, DType::f32, {3})}) {
    EXPECT_NE(error_of(ErrorKind::data, [&] { reader.read("a", wrong); }).find("memory: tensor 'a' is F32 [2]"),
              std::string::npos);
  }
  error_of(ErrorKind::data, [&] { reader.read("b", Tensor(memory, DType::f32, {2})); });
}

TEST(Safetensors, ReadsTypesItDoesNotComputeIn) {
  const SafetensorsReader reader = reader_of(file_of(
      R"({"a":{"dtype":"U8","shape":[],"data_offsets":[1,2]},"b":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}}  )",
      "ab"));
  EXPECT_FALSE(reader.find("a")->dtype.has_value());
  EXPECT_EQ(reader.entries().front().name, "b");
}

TEST(Safetensors, HostileFiles) {
  const std::string good = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  struct Case {
    const char* reason;
    std::string bytes;
  };
  const Case cases[] = {
      {"too few", ""},
      {"too few", "1234567"},
      {"not a safetensors file", std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)},
      {"not a safetensors file", std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10)},
      {"not a safetensors file", std::string("\x03\0\0\0\0\0\0\0{}", 10)},
      {"does not start", file_of("")},
      {"does not start", file_of(" {}")},
      {"does not start", file_of("[]")},
      {"not valid JSON", file_of("{")},
      {"not valid JSON", file_of("{} x")},
      {"not valid JSON", file_of("{\"\xff\":1}")},
      {"belong to no tensor", file_of("{}", "x")},
      {"stands twice", file_of("{" + good + "," + good + "}", "12345678")},
      {"stands twice", file_of(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678")},
      {"not a JSON object", file_of(R"({"a":3})")},
      {"missing", file_of(R"({"a":{"dtype":"F32","shape":[2]}})")},
      {"unknown field", file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", "12345678")},
      {"unknown dtype", file_of(R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", "12345678")},
      {"not a string", file_of(R"({"a":{"dtype":5,"shape":[2],"data_offsets":[0,8]}})", "12345678")},
      {"its shape and dtype need", file_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "12345678")},
      {"negative or overflows", file_of(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "12345678")},
      {"negative or overflows",
       file_of(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})")},
      {"not a 64-bit integer",
       file_of(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", "12345678")},
      {"not a 64-bit integer", file_of(R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", "12345678")},
      {"lie outside", file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234567")},
      {"lie outside", file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "12345678")},
      {"lie outside", file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})", "12345678")},
      {"two numbers", file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", "12345678")},
      {"hole", file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "123")},
      {"inside",
       file_of(
           R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
           "123")},
      {"too many dimensions", file_of(R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", "1")},
      {"name is empty", file_of(R"({"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1")},
      {"name is empty", file_of(R"({"a\nb":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1")},
      {"name is empty",
       file_of("{\"" + std::string(513, 'a') + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1")},
      {"__metadata__", file_of(R"({"__metadata__":[]})")},
      {"__metadata__", file_of(R"({"__metadata__":{"a":1}})")},
      {"nested deeper", file_of(R"({"a":)" + std::string(1000, '[') + std::string(1000, ']') + "}")},
  };
  for (const Case& hostile : cases) {
    const std::string message = error_of(ErrorKind::data, [&] { reader_of(hostile.bytes); });
    EXPECT_NE(message.find(hostile.reason), std::string::npos) << message << "\nwanted: " << hostile.reason;
    EXPECT_EQ(message.find("memory"), 0u) << message;
  }
}

TEST(Safetensors, AFloodOfValuesIsRefusedEarly) {
  std::string header = R"({"a":[0)";
  for (int i = 0; i < 5'000'000; ++i) header += ",0";
  const std::string message = error_of(ErrorKind::data, [&] { reader_of(file_of(header + "]}")); });
  EXPECT_NE(message.find("JSON values"), std::string::npos) << message;
}

}  // namespace
}  // namespace megalith::checkpoint
