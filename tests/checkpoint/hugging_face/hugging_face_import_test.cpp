#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/hugging_face_exported.h"

namespace megalith::checkpoint {
namespace {

using nlohmann::json;
using test::Exported;

TEST(HuggingFaceImport, NamesWithoutPrefixAndOldBuffers) {
  const Exported model(test::kGpt);
  model.import_it();
  Loaded before = model.imported();
  const auto weights = test::weights_of(before);
  std::vector<float> mask(16 * 16);
  model.change_tensors([&](auto& tensors) {
    for (TensorView& view : tensors) view.name = view.name.substr(std::string("transformer.").size());
    tensors.push_back({"h.0.attn.bias", Tensor(mask.data(), DType::f32, {1, 1, 16, 16})});
    tensors.push_back({"h.1.attn.masked_bias", Tensor(mask.data(), DType::f32, {1})});
  });
  model.import_it();
  Loaded after = model.imported();
  EXPECT_EQ(test::weights_of(after), weights);
}

TEST(HuggingFaceImport, HalvesBecomeF32Exactly) {
  const Exported model(test::kLlama, {.dtype = DType::bf16});
  std::string bytes = test::bytes_of(model / kSingleFile);
  size_t halves = 0;
  for (size_t at = 0; (at = bytes.find(R"("BF16")", at)) != std::string::npos; ++halves) {
    bytes.replace(at, 6, R"("F16" )");
  }
  ASSERT_EQ(halves, 21u);
  // One, minus two, the smallest, infinity.
  const std::string known = {0x00, 0x3c, 0x00, '\xc0', 0x01, 0x00, 0x00, 0x7c};
  bytes.replace(bytes.size() - known.size(), known.size(), known);
  test::overwrite(model / kSingleFile, bytes);
  EXPECT_EQ(model.import_it().dtype, DType::f32);
  Loaded loaded = model.imported();
  const SafetensorsReader reader = SafetensorsReader::open(model / kSingleFile);
  ASSERT_EQ(reader.entries().back().name, "lm_head.weight");
  std::vector<float> head(264 * 16);
  loaded.load_tensor(TensorKind::weights, "head.weight", Tensor(head.data(), DType::f32, {264, 16}));
  const std::vector<float> last(head.begin() + 257 * 16 - 4, head.begin() + 257 * 16);
  EXPECT_EQ(last, (std::vector<float>{1.0F, -2.0F, 0x1p-24F, std::numeric_limits<float>::infinity()}));
}

TEST(HuggingFaceImport, BothWaysToWriteTheRotaryBase) {
  const Exported model(test::kLlama);
  const json scaling{{"rope_type", "llama3"},
                     {"factor", 8.0},
                     {"low_freq_factor", 1.0},
                     {"high_freq_factor", 4.0},
                     {"original_max_position_embeddings", 64}};
  model.change_json(kHuggingFaceConfig, [&](json& root) {
    root["rope_theta"] = 500000;
    root["rope_scaling"] = scaling;
  });
  model.import_it();
  const auto old_way = test::architecture_of(test::config_of(model.imported()));
  EXPECT_EQ(old_way.at("model.rotary_base"), "500000.0");
  model.change_json(kHuggingFaceConfig, [&](json& root) {
    root.erase("rope_theta");
    root.erase("rope_scaling");
    root["rope_parameters"] = scaling;
    root["rope_parameters"]["rope_theta"] = 500000.0;
  });
  model.import_it();
  EXPECT_EQ(test::architecture_of(test::config_of(model.imported())), old_way);
}

}  // namespace
}  // namespace megalith::checkpoint
