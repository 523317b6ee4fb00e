#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/compact_ints.h"

namespace megalith::data {

class NumpyRandomState;

// How often a dataset is passed to yield the samples asked for.
struct EpochPlan {
  int64_t epochs = 1;
  int64_t samples = 0;                // in all epochs; at least what was asked for
  bool separate_final_epoch = false;  // the last epoch, needed only in part, is not mixed with the ones before
  int64_t samples_before_final = 0;   // where the shuffle of samples is cut if it is
};

// Samples of `sequence_length` tokens and one more, which is the first of the next sample. Megatron's rules, in int64.
EpochPlan plan_epochs(int64_t tokens_per_epoch, int64_t sequence_length, int64_t samples_wanted);

// The order of the samples of one dataset, identical to Megatron's: a function of the lengths, the seed and the number
// of samples asked for (the horizon), and of nothing else. Three indices from one random stream, in this order: the
// documents of all epochs, shuffled; where each sample starts in that walk; a shuffle of the samples.
class GptIndex {
 public:
  // Where a sample starts: a position in the document index and a token in that document.
  struct Start {
    int64_t position;
    int32_t offset;
    bool operator==(const Start&) const = default;
  };

  // `lengths` are those of the split's sequences, of which the first is number `first_sequence` of its dataset.
  GptIndex(std::span<const int32_t> lengths, int64_t first_sequence, int64_t sequence_length, int64_t samples_wanted,
           uint32_t seed);

  int64_t size() const { return shuffle_.size(); }
  const EpochPlan& plan() const { return plan_; }

  // The start of the i-th sample in training order.
  Start start(int64_t sample) const { return unshuffled_start(shuffle_[sample]); }
  // The sequence at a position of the document index.
  int64_t sequence_at(int64_t position) const { return documents_[static_cast<size_t>(position)]; }

  // The three indices one by one. Starts go from 0 to size() inclusive.
  std::span<const int32_t> document_index() const { return documents_; }
  Start unshuffled_start(int64_t sample) const { return {positions_[sample], offsets_[static_cast<size_t>(sample)]}; }
  int64_t shuffle_index(int64_t sample) const { return shuffle_[sample]; }

 private:
  void build_documents(NumpyRandomState& random, int64_t count, int64_t first_sequence);
  void build_starts(std::span<const int32_t> lengths, int64_t first_sequence, int64_t sequence_length);
  void build_shuffle(NumpyRandomState& random);

  EpochPlan plan_;
  std::vector<int32_t> documents_;
  CompactInts positions_;
  std::vector<int32_t> offsets_;
  CompactInts shuffle_;
};

}  // namespace megalith::data
