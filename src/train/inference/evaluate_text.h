#pragma once

#include <cmath>
#include <numbers>
#include <span>

#include "train/inference/text_model.h"

namespace megalith::train {

// How well a model predicts a text.
struct TextLoss {
  double nats = 0.0;  // of all tokens together
  int64_t tokens = 0;
  int64_t bytes = 0;

  double loss() const { return nats / static_cast<double>(tokens); }
  double perplexity() const { return std::exp(loss()); }
  double bits_per_byte() const { return nats / std::numbers::ln2 / static_cast<double>(bytes); }
  void add(const TextLoss& other) {
    nats += other.nats;
    tokens += other.tokens;
    bytes += other.bytes;
  }
};

struct TextWindows {
  int32_t first = 0;   // stands before the document, so that its first token is predicted, too
  int64_t stride = 0;  // tokens that a window predicts; 0: as many as the model reads at once
};

// Nats of every token of a document, each predicted once. One that is longer than the model reads is read in windows,
// each as long as the model allows: the next one ends `stride` tokens behind the one before, and its tokens see what
// comes before them in the window.
double nats_of_document(TextModel& model, std::span<const int32_t> ids, const TextWindows& windows);

}  // namespace megalith::train
