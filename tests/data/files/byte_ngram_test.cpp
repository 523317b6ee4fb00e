#include "data/files/byte_ngram.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "data/data_testing.h"

namespace megalith::data {
namespace {

// Uniform draws from `letters` symbols.
std::vector<int32_t> noise(int32_t letters, size_t count, uint64_t key) {
  std::vector<int32_t> tokens(count);
  for (size_t i = 0; i < count; ++i) {
    tokens[i] =
        static_cast<int32_t>(philox(key, {static_cast<uint32_t>(i), 0, 0, 0})[0] % static_cast<uint32_t>(letters));
  }
  return tokens;
}

TEST(ByteNgram, FindsTheEntropyOfNoise) {
  ByteNgram model;
  model.fit(noise(8, 60000, 1));
  EXPECT_NEAR(model.bits_per_byte(noise(8, 20000, 2)), 3.0, 0.02);
}

// The next symbol is the sum of the last two and a coin: only the trigram sees it.
TEST(ByteNgram, FindsTheEntropyOfASecondOrderSource) {
  const auto source = [](uint64_t key) {
    auto tokens = noise(2, 60000, key);
    for (size_t i = 2; i < tokens.size(); ++i) tokens[i] = (tokens[i - 2] + tokens[i - 1] + 8 * tokens[i]) % 32;
    return tokens;
  };
  ByteNgram model;
  model.fit(source(1));
  EXPECT_NEAR(model.bits_per_byte(source(2)), 1.0, 0.1);
}

TEST(ByteNgram, ProbabilitiesSumToOne) {
  ByteNgram model;
  model.fit(noise(20, 2000, 1));
  for (const auto& [before_last, last] :
       {std::pair{3, 4}, std::pair{200, 5}, std::pair{200, 201}, std::pair{256, 256}}) {
    double sum = 0.0;
    double least = 1.0;
    for (int32_t token = 0; token < ByteNgram::kVocab; ++token) {
      const double probability = model.probability(before_last, last, token);
      sum += probability;
      least = std::min(least, probability);
    }
    EXPECT_NEAR(sum, 1.0, 1e-12);
    EXPECT_GT(least, 0.0);
  }
}

TEST(ByteNgram, DividesByBytesOnly) {
  ByteNgram model;
  model.fit(noise(4, 1000, 1));
  std::vector<int32_t> tokens = noise(4, 100, 2);
  tokens.push_back(256);
  const double of_bytes = 100.0 * model.bits_per_byte(std::span(tokens).first(100));
  const double of_eod = -std::log2(model.probability(tokens[98], tokens[99], 256));
  EXPECT_NEAR(100.0 * model.bits_per_byte(tokens), of_bytes + of_eod, 1e-9);
}

TEST(ByteNgram, RefusesOtherTokens) {
  ByteNgram model;
  expect_error(ErrorKind::data, {"257"}, [&] { model.fit(std::vector<int32_t>(200, 257)); });
  expect_error(ErrorKind::data, {"too few"}, [&] { model.fit(std::vector<int32_t>(99, 1)); });
}

}  // namespace
}  // namespace megalith::data
