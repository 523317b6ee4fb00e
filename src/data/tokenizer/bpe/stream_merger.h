#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/bpe/bpe_encoder.h"

namespace megalith::data {

// Merges one piece that comes bit by bit, in memory that does not grow with it: far behind its end the ids of a piece
// are certain. (How far a byte can reach back is bounded by the vocabulary; see merge_by_windows. Real ones need a few
// hundred bytes. Here the last `kept` bytes may still change.)
class StreamMerger {
 public:
  explicit StreamMerger(size_t kept = size_t{1} << 20, size_t window = BpeMerger::kWindowBytes)
      : kept_(kept), window_(window) {}

  void add(std::string_view bytes) { text_ += bytes; }
  // Appends the ids that are certain. Not after every byte: this costs as much as a window.
  void settle(const BpeModel& model, std::vector<int32_t>& ids);
  // Appends the rest; ready for the next piece.
  void finish(BpeEncoder& encoder, std::vector<int32_t>& ids);
  size_t unsettled() const { return text_.size() - done_; }
  bool empty() const { return text_.empty(); }  // nothing was added to the piece

 private:
  void extend(const BpeModel& model);

  size_t kept_;
  size_t window_;
  BpeMerger merger_;
  std::string text_;            // from the first of ids_ on
  size_t done_ = 0;             // bytes of it that ids_ stand for
  std::vector<int32_t> ids_;    // those that may change
  bool begin_is_gone_ = false;  // ids were handed over
};

}  // namespace megalith::data
