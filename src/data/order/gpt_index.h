#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "data/order/compact_ints.h"

namespace megalith::data {

class NumpyRandomState;
class IndexFile;

// How often a dataset is passed to yield the samples asked for.
struct Epochs {
  int64_t count = 1;
  int64_t samples = 0;                // in all epochs; at least what was asked for
  bool separate_final_epoch = false;  // the last epoch, needed only in part, is not mixed with the ones before
  int64_t samples_before_final = 0;   // where the shuffle of samples is cut if it is
  bool operator==(const Epochs&) const = default;
};

// Samples of `sequence_length` tokens and one more, which is the first of the next sample. Megatron's rules, in int64.
Epochs count_epochs(int64_t tokens_per_epoch, int64_t sequence_length, int64_t samples_wanted);

// Non-negative integers of 4 or 8 bytes that lie elsewhere.
struct CompactSpan {
  std::span<const std::byte> bytes;
  size_t width = 4;

  int64_t size() const { return static_cast<int64_t>(bytes.size() / width); }
  const std::byte* at(int64_t index) const { return bytes.data() + static_cast<size_t>(index) * width; }
  int64_t operator[](int64_t index) const {
    if (width == 4) {
      uint32_t value;
      std::memcpy(&value, at(index), sizeof(value));
      return value;
    }
    int64_t value;
    std::memcpy(&value, at(index), sizeof(value));
    return value;
  }
};

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
  // What save() wrote. Throws DamagedIndex where the file does not fit together, here and when it is used.
  explicit GptIndex(std::shared_ptr<const IndexFile> file);
  GptIndex(const GptIndex&) = delete;
  GptIndex& operator=(const GptIndex&) = delete;

  int64_t size() const { return epochs_.samples; }
  const Epochs& epochs() const { return epochs_; }

  // The start of the i-th sample in training order.
  Start start(int64_t sample) const { return unshuffled_start(shuffle_index(sample)); }
  // The sequence at a position of the document index.
  int64_t sequence_at(int64_t position) const;

  // The three indices one by one. Starts go from 0 to size() inclusive.
  std::span<const int32_t> document_index() const;
  Start unshuffled_start(int64_t sample) const;
  int64_t shuffle_index(int64_t sample) const;

 private:
  friend class IndexCache;

  void build_documents(NumpyRandomState& random, int64_t count, int64_t first_sequence);
  void build_starts(std::span<const int32_t> lengths, int64_t first_sequence, int64_t sequence_length);
  void build_shuffle(NumpyRandomState& random);
  void check_place(int64_t index, int64_t count, const char* what) const;

  Epochs epochs_;
  // What was built here; empty where the index lies in a file.
  std::vector<int32_t> own_documents_;
  CompactInts own_positions_;
  std::vector<int32_t> own_offsets_;
  CompactInts own_shuffle_;
  std::shared_ptr<const IndexFile> file_;

  std::span<const int32_t> documents_;
  CompactSpan positions_;
  std::span<const int32_t> offsets_;
  CompactSpan shuffle_;
};

}  // namespace megalith::data
