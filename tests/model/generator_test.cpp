#include "model/generator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/safetensors.h"
#include "repository.h"
#include "tiny_model.h"

namespace megalith::model::testing {
namespace {

constexpr int64_t kLength = 16;

// Logits of the last of the first `fed` tokens, fed in pieces of the given sizes.
std::vector<float> fed_in_pieces(TinyModel& model, const std::vector<int64_t>& pieces) {
  const ModelConfig& config = model.config;
  Arena cache("cache", Device::cpu, 1 << 20);
  Arena scratch("scratch", Device::cpu, 1 << 22);
  Generator generator(config, model.store, model.stream, cache, kLength);
  std::vector<float> logits(static_cast<size_t>(config.padded_vocabulary));
  int64_t position = 0;
  for (const int64_t piece : pieces) {
    generator.feed(
        {.stream = model.stream, .scratch = scratch, .batch = 1, .length = piece, .position_offset = position},
        Tensor(model.ids.data() + position, DType::i32, {piece}),
        Tensor(logits.data(), DType::f32, {1, config.padded_vocabulary}));
    position += piece;
  }
  return logits;
}

TEST(Generator, PiecesGiveTheSameLogitsAsTheWhole) {
  for (const ModelConfig& config : {tiny_gpt(), tiny_llama()}) {
    TinyModel model(config, 1, kLength);
    const std::vector<float> whole = fed_in_pieces(model, {16});
    for (const std::vector<int64_t>& pieces : {std::vector<int64_t>{15, 1}, {1, 1, 1, 13}, {5, 6, 5}}) {
      const std::vector<float> parts = fed_in_pieces(model, pieces);
      for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(parts[i], whole[i], 1e-4F * (1.0F + std::abs(whole[i])));
    }
  }
}

// The golden file's logits: the generator's road through the model ends where PyTorch's does.
TEST(Generator, LogitsAgreeWithPyTorch) {
  const std::pair<const char*, ModelConfig> cases[] = {{"gpt.safetensors", tiny_gpt()},
                                                       {"llama.safetensors", tiny_llama()}};
  for (const auto& [file, config] : cases) {
    auto reader = checkpoint::SafetensorsReader::open(in_repository("tests/golden") / file);
    TinyModel model(config, 1, kLength);
    for (const parallel::Parameter& parameter : model.store.all()) {
      const bool padded = parameter.weight.shape.rank() == 2 && parameter.weight.rows() == config.padded_vocabulary &&
                          !parameter.spec->name.starts_with("layers.");
      reader.read("weights/" + parameter.spec->name,
                  padded ? parameter.weight.slice_rows(0, config.vocabulary) : parameter.weight);
    }
    std::vector<int32_t> tokens(10 * 3 * (kLength + 1));
    reader.read("tokens", Tensor(tokens.data(), DType::i32, {10, 3, kLength + 1}));
    std::copy_n(tokens.begin(), kLength, model.ids.begin());
    std::vector<float> expected(static_cast<size_t>(3 * kLength * config.vocabulary));
    reader.read("logits", Tensor(expected.data(), DType::f32, {3 * kLength, config.vocabulary}));
    std::vector<float> logits = fed_in_pieces(model, {10, 6});
    const Shape shape{config.vocabulary};
    EXPECT_LT(relative_error(Tensor(logits.data(), DType::f32, shape),
                             Tensor(expected.data() + (kLength - 1) * config.vocabulary, DType::f32, shape)),
              1e-5);
  }
}

}  // namespace
}  // namespace megalith::model::testing
