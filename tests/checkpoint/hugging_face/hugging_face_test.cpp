#include "checkpoint/hugging_face/hugging_face.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>

#include "checkpoint/hugging_face/hugging_face_files.h"
#include "checkpoint/hugging_face_fixtures.h"
#include "config/load.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::SavedModel;
using testing::TempDir;

std::set<std::string> names_in(const fs::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename().string());
  return names;
}

struct Case {
  const char* name;
  std::vector<std::string> overrides;
  bool llama = false;
};

class RoundTrip : public ::testing::TestWithParam<Case> {};

TEST_P(RoundTrip, ComesBackBitIdentical) {
  const TempDir dir;
  const SavedModel saved(dir / "checkpoints", GetParam().llama ? test::kLlama : test::kGpt, GetParam().overrides);
  for (const int64_t file_bytes : {int64_t{5'000'000'000}, int64_t{3000}}) {
    const fs::path out = dir / fmt::format("hf-{}", file_bytes);
    const fs::path back = dir / fmt::format("back-{}", file_bytes);
    Loaded loaded = saved.open();
    const Converted exported = export_hugging_face(loaded, saved.run(), out, {.max_shard_bytes = file_bytes});
    EXPECT_EQ(exported.files > 1, file_bytes == 3000);
    EXPECT_EQ(fs::exists(out / kIndexFile), file_bytes == 3000);
    EXPECT_EQ(fs::exists(out / kSingleFile), file_bytes != 3000);

    const Converted imported = import_hugging_face(out, back, test::kBytes);
    EXPECT_EQ(imported.family, exported.family);
    EXPECT_EQ(imported.dtype, exported.dtype);
    EXPECT_EQ(imported.parameters, exported.parameters);
    EXPECT_EQ(imported.files, exported.files);
    Loaded again = Loaded::open(back / "step-00000000");
    again.verify();
    EXPECT_EQ(test::weights_of(again), saved.weights());
    EXPECT_EQ(again.manifest().state.step, 0);

    // The architecture, too: only what a run decides may differ.
    const config::Run run = test::config_of(again);
    EXPECT_EQ(test::architecture_of(run), test::architecture_of(saved.run()));
  }
}

INSTANTIATE_TEST_SUITE_P(
    HuggingFace, RoundTrip,
    ::testing::Values(
        Case{"gpt2", {}}, Case{"gpt2_untied", {"model.share_embeddings_and_output_weights=false"}},
        Case{"gpt2_no_padding", {"model.make_vocab_size_divisible_by=1"}},
        Case{"gpt2_bf16", {"trainer.precision=bf16"}}, Case{"llama", {}, true},
        Case{"llama_without_groups", {"model.num_query_groups=4"}, true},
        Case{"llama_one_group_wide_heads", {"model.num_query_groups=1", "model.kv_channels=6"}, true},
        Case{"llama_tied", {"model.share_embeddings_and_output_weights=true"}, true},
        Case{"llama_bias", {"model.bias=true"}, true}, Case{"llama_bf16", {"trainer.precision=bf16"}, true},
        Case{"llama_scaled_rope",
             {"model.rope_scaling.factor=8", "model.rope_scaling.old_context_len=64", "model.rotary_base=500000"},
             true}),
    [](const auto& each) { return each.param.name; });

TEST(HuggingFace, TensorsLieAsTransformersHasThem) {
  const TempDir dir;
  const SavedModel gpt(dir / "gpt", test::kGpt);
  Loaded loaded = gpt.open();
  const Converted exported = export_hugging_face(loaded, gpt.run(), dir / "hf-gpt");
  EXPECT_EQ(std::set<std::string>(exported.written.begin(), exported.written.end()), names_in(dir / "hf-gpt"));
  EXPECT_EQ(names_in(dir / "hf-gpt"),
            (std::set<std::string>{kHuggingFaceConfig, kSingleFile, kPaddingFile, "tokenizer.json",
                                   "tokenizer_config.json", "generation_config.json"}));
  const SafetensorsReader reader = SafetensorsReader::open(dir / "hf-gpt" / kSingleFile);
  EXPECT_EQ(reader.metadata().at("format"), "pt");
  EXPECT_EQ(reader.find("lm_head.weight"), nullptr);
  EXPECT_EQ(reader.find("transformer.wte.weight")->shape, (std::vector<int64_t>{257, 16}));
  // Conv1D is (in, out).
  std::vector<float> theirs(16 * 48);
  reader.read("transformer.h.1.attn.c_attn.weight", Tensor(theirs.data(), DType::f32, {16, 48}));
  std::vector<float> ours(theirs.size());
  loaded.load_tensor(TensorKind::weights, "layers.1.attention.qkv.weight", Tensor(ours.data(), DType::f32, {48, 16}));
  EXPECT_EQ(theirs[3 * 48 + 40], ours[40 * 16 + 3]);

  const SavedModel llama(dir / "llama", test::kLlama);
  Loaded fused = llama.open();
  export_hugging_face(fused, llama.run(), dir / "hf-llama");
  const SafetensorsReader parts = SafetensorsReader::open(dir / "hf-llama" / kSingleFile);
  std::vector<float> v(8 * 16);
  parts.read("model.layers.0.self_attn.v_proj.weight", Tensor(v.data(), DType::f32, {8, 16}));
  fused.load_tensor(TensorKind::weights, "layers.0.attention.qkv.weight", Tensor(ours.data(), DType::f32, {32, 16}));
  // 16 rows of q, 8 of k, then v.
  EXPECT_EQ(v[2 * 16 + 5], ours[(16 + 8 + 2) * 16 + 5]);
}

TEST(HuggingFace, MastersAreWhatF32Means) {
  const TempDir dir;
  const SavedModel saved(dir / "checkpoints", test::kGpt, {"trainer.precision=bf16"});
  Loaded loaded = saved.open();
  const Converted exported = export_hugging_face(loaded, saved.run(), dir / "hf", {.dtype = DType::f32});
  EXPECT_EQ(exported.dtype, DType::f32);
  const SafetensorsReader reader = SafetensorsReader::open(dir / "hf" / kSingleFile);
  std::vector<float> theirs(16), master(16);
  reader.read("transformer.ln_f.weight", Tensor(theirs.data(), DType::f32, {16}));
  loaded.load_tensor(TensorKind::master, "final_norm.weight", Tensor(master.data(), DType::f32, {16}));
  EXPECT_EQ(theirs, master);
  // Back in bf16, where somebody asks for it.
  ImportOptions options = test::kBytes;
  options.dtype = DType::bf16;
  EXPECT_EQ(import_hugging_face(dir / "hf", dir / "back", options).dtype, DType::bf16);
}

TEST(HuggingFace, WithoutThePaddingFileItIsZero) {
  const TempDir dir;
  const SavedModel saved(dir / "checkpoints", test::kGpt);
  Loaded loaded = saved.open();
  export_hugging_face(loaded, saved.run(), dir / "hf");
  fs::remove(dir / "hf" / kPaddingFile);
  import_hugging_face(dir / "hf", dir / "back", test::kBytes);
  Loaded back = Loaded::open(dir / "back/step-00000000");
  std::vector<float> tokens(264 * 16);
  back.load_tensor(TensorKind::weights, "embedding.tokens.weight", Tensor(tokens.data(), DType::f32, {264, 16}));
  EXPECT_NE(tokens[256 * 16], 0.0F);
  EXPECT_EQ(std::vector<float>(tokens.begin() + 257 * 16, tokens.end()), std::vector<float>(7 * 16));
}

TEST(HuggingFace, NothingIsOverwritten) {
  const TempDir dir;
  const SavedModel saved(dir / "checkpoints", test::kGpt);
  Loaded loaded = saved.open();
  fs::create_directory(dir / "full");
  test::overwrite(dir / "full/precious", "x");
  error_of(ErrorKind::user, [&] { export_hugging_face(loaded, saved.run(), dir / "full"); });
  fs::create_directory_symlink(dir / "full", dir / "link");
  error_of(ErrorKind::user, [&] { export_hugging_face(loaded, saved.run(), dir / "link"); });
  EXPECT_EQ(names_in(dir / "full"), std::set<std::string>{"precious"});
  fs::create_directory(dir / "empty");
  export_hugging_face(loaded, saved.run(), dir / "empty/");
  EXPECT_TRUE(fs::exists(dir / "empty" / kHuggingFaceConfig));
  // Nothing unfinished is left beside any of them.
  EXPECT_EQ(names_in(dir.path()), (std::set<std::string>{"checkpoints", "full", "link", "empty"}));
}

TEST(HuggingFace, AModelOfNoFamilyIsRefused) {
  const TempDir dir;
  const SavedModel saved(dir / "checkpoints", test::kGpt, {"model.normalization=rmsnorm"});
  Loaded loaded = saved.open();
  const std::string message = error_of(ErrorKind::user, [&] { export_hugging_face(loaded, saved.run(), dir / "hf"); });
  EXPECT_NE(message.find("rmsnorm"), std::string::npos) << message;
  EXPECT_FALSE(fs::exists(dir / "hf"));
}

}  // namespace
}  // namespace megalith::checkpoint
