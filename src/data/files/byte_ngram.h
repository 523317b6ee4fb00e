#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace megalith::data {

// An interpolated trigram model of bytes: what a trained model must beat to have learned more than counting. Each
// probability is a mix of the uniform, unigram, bigram and trigram estimates (F. Jelinek and R. L. Mercer,
// "Interpolated estimation of Markov source parameters from sparse data", 1980); how much each counts depends on how
// often the contexts have been seen, and is fitted by expectation maximisation on tokens held out of the counts.
class ByteNgram {
 public:
  static constexpr int64_t kVocab = 257;  // bytes, and eod

  // Data error for an id outside of the vocabulary, or for fewer than 100 tokens.
  void fit(std::span<const int32_t> tokens);

  // The bits of all tokens, eod included, over the number of bytes (ids below 256).
  double bits_per_byte(std::span<const int32_t> tokens) const;
  double probability(int32_t before_last, int32_t last, int32_t token) const;

 private:
  static constexpr size_t kOrders = 4;
  static constexpr size_t kBuckets = 32;  // by the bits of a context's count
  using Mix = std::array<double, kOrders>;

  void add_counts(std::span<const int32_t> tokens);
  void fit_mixes(std::span<const int32_t> held_out);
  Mix estimates(int32_t before_last, int32_t last, int32_t token) const;
  size_t bucket(int32_t before_last, int32_t last) const;

  std::vector<uint32_t> trigrams_;  // (before last, last, token)
  std::vector<uint32_t> pairs_;     // how often the context (before last, last) was seen
  std::vector<uint32_t> bigrams_;   // (last, token)
  std::vector<uint64_t> singles_;   // how often the context (last) was seen
  std::vector<uint64_t> unigrams_;
  uint64_t tokens_ = 0;
  std::vector<Mix> mixes_;
};

}  // namespace megalith::data
