#include "data/files/byte_ngram.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/error.h"

namespace megalith::data {

namespace {
constexpr int32_t kEod = ByteNgram::kVocab - 1;
constexpr int kRounds = 30;

size_t at(int32_t a, int32_t b) {
  return static_cast<size_t>(a * ByteNgram::kVocab + b);
}
size_t at(int32_t a, int32_t b, int32_t c) {
  return at(a, b) * ByteNgram::kVocab + static_cast<size_t>(c);
}

// Calls visit(before last, last, token) for each token; the text begins as if documents had ended before it.
template <class Visit>
void walk(std::span<const int32_t> tokens, Visit&& visit) {
  int32_t before_last = kEod;
  int32_t last = kEod;
  for (const int32_t token : tokens) {
    if (token < 0 || token >= ByteNgram::kVocab) data_error("token id {} is no byte and not eod", token);
    visit(before_last, last, token);
    before_last = last;
    last = token;
  }
}
}  // namespace

void ByteNgram::fit(std::span<const int32_t> tokens) {
  if (tokens.size() < 100) data_error("{} tokens are too few for a trigram model", tokens.size());
  trigrams_.assign(static_cast<size_t>(kVocab * kVocab * kVocab), 0);
  pairs_.assign(static_cast<size_t>(kVocab * kVocab), 0);
  bigrams_.assign(static_cast<size_t>(kVocab * kVocab), 0);
  singles_.assign(static_cast<size_t>(kVocab), 0);
  unigrams_.assign(static_cast<size_t>(kVocab), 0);
  tokens_ = 0;
  const auto held_out = tokens.last(tokens.size() / 10);
  add_counts(tokens.first(tokens.size() - held_out.size()));
  fit_mixes(held_out);
  // The mixes hold for contexts seen so and so often, so the counts may take in the held-out tokens now.
  add_counts(held_out);
}

void ByteNgram::add_counts(std::span<const int32_t> tokens) {
  walk(tokens, [this](int32_t before_last, int32_t last, int32_t token) {
    ++trigrams_[at(before_last, last, token)];
    ++pairs_[at(before_last, last)];
    ++bigrams_[at(last, token)];
    ++singles_[static_cast<size_t>(last)];
    ++unigrams_[static_cast<size_t>(token)];
  });
  tokens_ += tokens.size();
}

ByteNgram::Mix ByteNgram::estimates(int32_t before_last, int32_t last, int32_t token) const {
  const auto ratio = [](auto part, auto whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  return {1.0 / kVocab, ratio(unigrams_[static_cast<size_t>(token)], tokens_),
          ratio(bigrams_[at(last, token)], singles_[static_cast<size_t>(last)]),
          ratio(trigrams_[at(before_last, last, token)], pairs_[at(before_last, last)])};
}

size_t ByteNgram::bucket(int32_t before_last, int32_t last) const {
  const auto pair = static_cast<size_t>(std::bit_width(pairs_[at(before_last, last)]));
  if (pair > 0) return std::min(pair, kBuckets / 2 - 1);
  // An unseen pair: then it matters how often its last token was seen, none being the last bucket of all.
  const auto single = static_cast<size_t>(std::bit_width(singles_[static_cast<size_t>(last)]));
  return kBuckets - 1 - std::min(single, kBuckets / 2 - 1);
}

void ByteNgram::fit_mixes(std::span<const int32_t> held_out) {
  mixes_.assign(kBuckets, Mix{0.25, 0.25, 0.25, 0.25});
  for (int round = 0; round < kRounds; ++round) {
    // One count of each in advance keeps every weight above 0, so that no token ever gets probability 0.
    std::vector<Mix> shares(kBuckets, Mix{1.0, 1.0, 1.0, 1.0});
    walk(held_out, [&](int32_t before_last, int32_t last, int32_t token) {
      const Mix estimate = estimates(before_last, last, token);
      const size_t place = bucket(before_last, last);
      const Mix& mix = mixes_[place];
      double sum = 0.0;
      for (size_t i = 0; i < kOrders; ++i) sum += mix[i] * estimate[i];
      for (size_t i = 0; i < kOrders; ++i) shares[place][i] += mix[i] * estimate[i] / sum;
    });
    for (size_t place = 0; place < kBuckets; ++place) {
      double sum = 0.0;
      for (const double share : shares[place]) sum += share;
      for (size_t i = 0; i < kOrders; ++i) mixes_[place][i] = shares[place][i] / sum;
    }
  }
}

double ByteNgram::probability(int32_t before_last, int32_t last, int32_t token) const {
  const Mix estimate = estimates(before_last, last, token);
  const Mix& mix = mixes_[bucket(before_last, last)];
  // A context that was never seen predicts nothing: its weight goes to the others.
  const std::array<bool, kOrders> known = {true, true, singles_[static_cast<size_t>(last)] > 0,
                                           pairs_[at(before_last, last)] > 0};
  double sum = 0.0;
  double weight = 0.0;
  for (size_t i = 0; i < kOrders; ++i) {
    if (!known[i]) continue;
    sum += mix[i] * estimate[i];
    weight += mix[i];
  }
  return sum / weight;
}

double ByteNgram::bits_per_byte(std::span<const int32_t> tokens) const {
  MEGALITH_CHECK(!mixes_.empty(), "the trigram model is asked before it is fitted");
  double bits = 0.0;
  walk(tokens, [&](int32_t before_last, int32_t last, int32_t token) {
    bits -= std::log2(probability(before_last, last, token));
  });
  const auto bytes = std::count_if(tokens.begin(), tokens.end(), [](int32_t token) { return token < kEod; });
  return bits / static_cast<double>(bytes);
}

}  // namespace megalith::data
