#include "data/tokenizer/bpe/stream_merger.h"

namespace megalith::data {

void StreamMerger::extend(const BpeModel& model) {
  if (ids_.empty()) {
    done_ = std::min(window_, text_.size());
    merger_.merge_by_heap(model, std::string_view(text_).substr(0, done_), ids_);
    return;
  }
  done_ = merger_.extend(
      model, {.piece = text_, .done = done_, .first_id = 0, .window = window_, .goes_on = begin_is_gone_}, ids_);
}

void StreamMerger::settle(const BpeModel& model, std::vector<int32_t>& ids) {
  // A short piece may be a token as a whole, which finish() looks up.
  while (text_.size() - done_ > 2 * window_) extend(model);
  if (done_ < 2 * kept_) return;
  size_t count = 0;
  size_t bytes = 0;
  while (count + 1 < ids_.size()) {
    const size_t next = bytes + model.tokens().bytes(ids_[count]).size();
    if (next > done_ - kept_) break;
    bytes = next;
    ++count;
  }
  const auto end = ids_.begin() + static_cast<std::ptrdiff_t>(count);
  ids.insert(ids.end(), ids_.begin(), end);
  ids_.erase(ids_.begin(), end);
  text_.erase(0, bytes);
  done_ -= bytes;
  begin_is_gone_ = begin_is_gone_ || count > 0;
}

void StreamMerger::finish(BpeEncoder& encoder, std::vector<int32_t>& ids) {
  if (ids_.empty()) {
    if (!text_.empty()) encoder.encode_piece(text_, ids);
  } else {
    while (done_ < text_.size()) extend(*encoder.model());
    ids.insert(ids.end(), ids_.begin(), ids_.end());
  }
  text_.clear();
  ids_.clear();
  done_ = 0;
  begin_is_gone_ = false;
}

}  // namespace megalith::data
