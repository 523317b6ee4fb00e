#include "model/generator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/format/safetensors.h"
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
  Generator generator(config, model.store, model.stream, cache, {.length = kLength});
  std::vector<float> logits(static_cast<size_t>(config.padded_vocabulary));
  int64_t position = 0;
  for (const int64_t piece : pieces) {
    generator.feed(
        {.stream = model.stream, .scratch = scratch, .batch = 1, .length = piece, .position_offset = position}, 0,
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

// Sequences of different lengths that go on together, in any of the places, as each of them alone.
TEST(Generator, SequencesThatGoOnTogetherDoNotSeeEachOther) {
  for (const ModelConfig& config : {tiny_gpt(), tiny_llama()}) {
    TinyModel model(config, 1, kLength);
    Arena cache("cache", Device::cpu, 1 << 20);
    Arena scratch("scratch", Device::cpu, 1 << 22);
    Generator generator(config, model.store, model.stream, cache, {.sequences = 3, .length = kLength});
    const auto context = [&](int64_t batch, int64_t length, int64_t position) {
      return Context{
          .stream = model.stream, .scratch = scratch, .batch = batch, .length = length, .position_offset = position};
    };
    // Tokens read so far, and the next one, of the sequences 2 and 0.
    const std::vector<int64_t> sequences{2, 0};
    const std::vector<int32_t> positions{3, 9};
    std::vector<float> logits(static_cast<size_t>(2 * config.padded_vocabulary));
    const Tensor both(logits.data(), DType::f32, {2, config.padded_vocabulary});
    std::vector<int32_t> next;
    for (size_t i = 0; i < 2; ++i) {
      generator.feed(context(1, positions[i], 0), sequences[i], Tensor(model.ids.data(), DType::i32, {positions[i]}),
                     both.slice_rows(0, 1));
      next.push_back(model.ids[static_cast<size_t>(positions[i])]);
    }
    Context together = context(2, 1, 0);
    together.positions = Tensor(const_cast<int32_t*>(positions.data()), DType::i32, {2});
    generator.feed_each(together, sequences, positions, Tensor(next.data(), DType::i32, {2}), both);
    for (int64_t i = 0; i < 2; ++i) {
      std::vector<float> alone = fed_in_pieces(model, {positions[static_cast<size_t>(i)], 1});
      EXPECT_LT(
          relative_error(both.slice_rows(i, i + 1), Tensor(alone.data(), DType::f32, {1, config.padded_vocabulary})),
          1e-6);
    }
  }
}

TEST(Generator, LossesAreThoseOfItsLogits) {
  for (const ModelConfig& config : {tiny_gpt(), tiny_llama()}) {
    TinyModel model(config, 1, kLength);
    Arena cache("cache", Device::cpu, 1 << 20);
    Arena scratch("scratch", Device::cpu, 1 << 22);
    Generator generator(config, model.store, model.stream, cache, {.length = kLength});
    constexpr int64_t kCount = 7;
    std::vector<float> weights(kCount, 1.0F), losses(kCount);
    generator.judge({.stream = model.stream, .scratch = scratch, .batch = 1, .length = kCount},
                    Tensor(model.ids.data(), DType::i32, {kCount}),
                    {.ids = Tensor(model.ids.data() + 1, DType::i32, {kCount}),
                     .weights = Tensor(weights.data(), DType::f32, {kCount}),
                     .losses = Tensor(losses.data(), DType::f32, {kCount})});
    for (int64_t i = 0; i < kCount; ++i) {
      const std::vector<float> logits = fed_in_pieces(model, {i + 1});
      double sum = 0.0;
      for (int64_t id = 0; id < config.vocabulary; ++id) sum += std::exp(logits[static_cast<size_t>(id)]);
      const int32_t target = model.ids[static_cast<size_t>(i + 1)];
      EXPECT_NEAR(losses[static_cast<size_t>(i)], std::log(sum) - logits[static_cast<size_t>(target)], 1e-4);
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
