#include "checkpoint/format/manifest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/file_names.h"
#include "checkpoint/fixtures.h"
#include "expect_error.h"

namespace megalith::checkpoint {
namespace {

using nlohmann::json;

Manifest example() {
  Manifest manifest;
  manifest.state = {.run_id = "r",
                    .step = 20,
                    .consumed_samples = 160,
                    .data = {.horizon = 1000, .seed = -3},
                    .config = "a: \"b\"\n\tü",
                    .extra = {{"k", "v"}}};
  FileDigests digests{.bytes = 5000, .whole = {}, .chunk_bytes = 4096, .chunks = {}};
  digests.chunks = {"0000000000000001", "0000000000000002"};
  digests.whole = digest_of_chunks(digests.chunks);
  manifest.shards = {{.file = "shard-g1-r00000.safetensors", .digests = digests}};
  manifest.tensors = {
      {.name = "embedding.weight",
       .kind = TensorKind::exp_avg_sq,
       .dtype = DType::f32,
       .shape = {30, 40},
       .pieces = {{.shard = "shard-g1-r00000.safetensors", .box = {.offset = {0, 0}, .extent = {10, 40}}},
                  {.shard = "shard-g1-r00000.safetensors", .box = {.offset = {10, 0}, .extent = {20, 40}}}}}};
  return manifest;
}

// Changes the body and signs it again, as a hostile writer would.
std::string forged(const std::function<void(json&)>& change) {
  json root = json::parse(encode(example()));
  change(root["body"]);
  root["digest"] = digest_of(root["body"].dump());
  return root.dump() + "\n";
}

std::string refusal(const std::string& text) {
  return error_of(ErrorKind::data, [&] { decode_manifest(text, "here"); });
}

TEST(Manifest, RoundTrip) {
  EXPECT_EQ(decode_manifest(encode(example()), "here"), example());
}

TEST(Manifest, ForgeryHelperKeepsAGoodManifestGood) {
  EXPECT_EQ(decode_manifest(forged([](json&) {}), "here"), example());
}

TEST(Manifest, RefusesForgeries) {
  struct Case {
    const char* reason;
    std::function<void(json&)> change;
  };
  const Case cases[] = {
      {"unknown field", [](json& body) { body["more"] = 1; }},
      {"unknown field", [](json& body) { body["data"]["more"] = 1; }},
      {"unknown field", [](json& body) { body["shards"][0]["more"] = 1; }},
      {"unknown field", [](json& body) { body["tensors"][0]["more"] = 1; }},
      {"unknown field", [](json& body) { body["tensors"][0]["pieces"][0]["more"] = 1; }},
      {"missing", [](json& body) { body.erase("config"); }},
      {"not a Megalith checkpoint", [](json& body) { body["format"] = "other"; }},
      {"format version 1", [](json& body) { body["version"] = 1; }},
      {"'step' is -1", [](json& body) { body["step"] = -1; }},
      {"not a 64-bit integer", [](json& body) { body["step"] = 1.5; }},
      {"not a string", [](json& body) { body["extra"]["k"] = 1; }},
      {"no shards", [](json& body) { body["shards"] = json::array(), body["tensors"] = json::array(); }},
      {"name of a shard", [](json& body) { body["shards"][0]["file"] = "../shard-g1-r00000.safetensors"; }},
      {"name of a shard", [](json& body) { body["shards"][0]["file"] = "/etc/passwd"; }},
      {"name of a shard", [](json& body) { body["shards"][0]["file"] = "shard-g01-r00000.safetensors"; }},
      {"stands twice", [](json& body) { body["shards"].push_back(body["shards"][0]); }},
      {"not that of the chunks", [](json& body) { body["shards"][0]["digest"] = "0123456789abcdef"; }},
      {"not a digest", [](json& body) { body["shards"][0]["chunk_digests"][1] = "12"; }},
      {"chunk digests", [](json& body) { body["shards"][0]["bytes"] = 50000; }},
      {"'chunk_bytes' is 1", [](json& body) { body["shards"][0]["chunk_bytes"] = 1; }},
      {"unknown kind", [](json& body) { body["tensors"][0]["kind"] = "momentum"; }},
      {"unknown dtype", [](json& body) { body["tensors"][0]["dtype"] = "f16"; }},
      {"not a shape",
       [](json& body) {
         body["tensors"][0]["shape"] = {-1, 4};
       }},
      {"not a shape",
       [](json& body) {
         body["tensors"][0]["shape"] = {int64_t{1} << 40, int64_t{1} << 40};
       }},
      {"does not lie in the tensor",
       [](json& body) {
         body["tensors"][0]["pieces"][1]["offset"] = {11, 0};
       }},
      {"does not lie in the tensor", [](json& body) { body["tensors"][0]["pieces"][1]["extent"] = {20}; }},
      {"overlap",
       [](json& body) {
         body["tensors"][0]["pieces"][1]["offset"] = {9, 0};
       }},
      {"not all of it",
       [](json& body) {
         body["tensors"][0]["pieces"][1]["extent"] = {19, 40};
       }},
      {"are missing", [](json& body) { body["tensors"][0]["pieces"] = json::array(); }},
      {"'rank' is 2",
       [](json& body) {
         body["part"] = {{"rank", 2}, {"ranks", 2}};
       }},
      {"not listed", [](json& body) { body["tensors"][0]["pieces"][0]["shard"] = "shard-g2-r00000.safetensors"; }},
      {"stand twice", [](json& body) { body["tensors"].push_back(body["tensors"][0]); }},
      {"larger than the shards", [](json& body) { body["tensors"][0]["dtype"] = "f64"; }},
  };
  for (const Case& forgery : cases) {
    const std::string message = refusal(forged(forgery.change));
    EXPECT_NE(message.find(forgery.reason), std::string::npos) << message << "\nwanted: " << forgery.reason;
    EXPECT_EQ(message.find("here"), 0u) << message;
  }
}

// Rank `rank` of two holds these columns of the tensor.
Manifest part_of(int64_t rank, int64_t first_column, int64_t columns) {
  Manifest part = example();
  part.part = Part{.rank = rank, .ranks = 2};
  part.shards[0].file = shard_name({.generation = 1, .rank = rank});
  part.tensors[0].pieces = {
      {.shard = part.shards[0].file, .box = {.offset = {0, first_column}, .extent = {30, columns}}}};
  return part;
}

TEST(Manifest, PartsOfAllRanksMakeTheWhole) {
  const Manifest first = part_of(0, 0, 15);
  const Manifest second = part_of(1, 15, 25);
  EXPECT_EQ(decode_manifest(encode(second), "here"), second);
  const Manifest whole = merge({second, first}, "here");
  EXPECT_FALSE(whole.part.has_value());
  EXPECT_EQ(whole.shards.size(), 2u);
  ASSERT_EQ(whole.tensors.size(), 1u);
  EXPECT_EQ(whole.tensors[0].pieces.size(), 2u);
  EXPECT_EQ(decode_manifest(encode(whole), "here"), whole);
}

TEST(Manifest, PartsThatDoNotFitAreRefused) {
  const auto refused = [](const Manifest& a, const Manifest& b) {
    return error_of(ErrorKind::data, [&] { merge({a, b}, "here"); });
  };
  const Manifest first = part_of(0, 0, 15);
  EXPECT_NE(refused(first, part_of(1, 15, 24)).find("not all of it"), std::string::npos);
  EXPECT_NE(refused(first, part_of(1, 14, 26)).find("overlap"), std::string::npos);
  EXPECT_NE(refused(first, part_of(0, 15, 25)).find("two parts of rank 0"), std::string::npos);
  Manifest other = part_of(1, 15, 25);
  other.state.step = 40;
  EXPECT_NE(refused(first, other).find("not of one save"), std::string::npos);
  other = part_of(1, 15, 25);
  other.tensors[0].dtype = DType::bf16;
  EXPECT_NE(refused(first, other).find("disagree"), std::string::npos);
}

TEST(Manifest, RefusesOtherSpellings) {
  const std::string text = encode(example());
  EXPECT_NE(refusal(" " + text).find("bytes are not as they were written"), std::string::npos);
  EXPECT_NE(refusal(text + "\n").find("bytes are not as they were written"), std::string::npos);
  EXPECT_NE(refusal("").find("not valid JSON"), std::string::npos);
}

TEST(Manifest, EveryFlippedBitIsNoticed) {
  const std::string text = encode(example());
  for (size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      EXPECT_THROW(decode_manifest(damaged, "here"), Error) << "byte " << i << " bit " << bit;
    }
  }
}

TEST(Manifest, TextThatIsNotUtf8CannotBeSaved) {
  Manifest manifest = example();
  manifest.state.config = "\xff";
  error_of(ErrorKind::user, [&] { encode(manifest); });
}

TEST(Manifest, DescribeShowsStepTensorsAndSizes) {
  const std::string text = describe(example());
  for (const char* part :
       {"step 20", "run               r\n", "horizon 1000", "exp_avg_sq: 1 tensors, 1200 elements, 4.7 KiB",
        "embedding.weight  f32   (30, 40)", "total 4.9 KiB"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Layout, NamesAreStrict) {
  EXPECT_EQ(step_name(20), "step-00000020");
  EXPECT_EQ(parse_step_name("step-00000020"), 20);
  EXPECT_EQ(parse_step_name("step-123456789"), 123456789);
  for (const char* wrong :
       {"step-20", "step-", "step--0000020", "step-00000020x", "step-000000020", "step-99999999999999999999"}) {
    EXPECT_FALSE(parse_step_name(wrong).has_value()) << wrong;
  }
  EXPECT_EQ(shard_name({.generation = 3, .rank = 12}), "shard-g3-r00012.safetensors");
  EXPECT_TRUE(parse_shard_name("shard-g3-r00012.safetensors").has_value());
  for (const char* wrong :
       {"shard-g3-r12.safetensors", "shard-g-r00000.safetensors", "shard-g1-r00000.safetensors/x", "manifest.json"}) {
    EXPECT_FALSE(parse_shard_name(wrong).has_value()) << wrong;
  }
  EXPECT_TRUE(is_trash_name(trash_name(10, 2)));
  EXPECT_FALSE(is_trash_name("trash-step-00000010"));
}

}  // namespace
}  // namespace megalith::checkpoint
