#include "data/tokenizer/bpe/bpe_stream.h"

#include "core/error.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/scan/nfc.h"

namespace megalith::data {

void PieceStream::add(std::string_view text, std::vector<int32_t>& ids) {
  // In steps: a long text at once would be held twice.
  while (!text.empty()) {
    const std::string_view part = text.substr(0, std::max<size_t>(enough_, 1));
    text.remove_prefix(part.size());
    text_ += part;
    if (text_.size() >= enough_) run(/*last=*/false, ids);
  }
}

void PieceStream::finish(std::vector<int32_t>& ids) {
  run(/*last=*/true, ids);
}

// False if the piece goes on behind the text that is here.
bool PieceStream::run_open(bool last, std::vector<int32_t>& ids) {
  const size_t used = open_->add(text_, last, tokenizer_.encoder_of_this_thread(), ids);
  text_.erase(0, used);
  if (!open_->ended()) return false;
  RunStore waiting = std::move(open_->waiting());
  open_.reset();
  if (waiting.empty()) return true;
  const std::string rest = std::move(text_);
  text_.clear();
  waiting.take([&](std::string_view text) { add(text, ids); });
  text_ += rest;
  return true;
}

void PieceStream::run(bool last, std::vector<int32_t>& ids) {
  for (;;) {
    while (open_) {
      if (!run_open(last, ids)) return;
    }
    BpeEncoder& encoder = tokenizer_.encoder_of_this_thread();
    if (last) {
      encoder.encode(text_, ids);
      text_.clear();
      return;
    }
    text_.erase(0, encoder.encode_settled(text_, ids));
    if (text_.size() < enough_ || text_.size() < kShortestOpen) return;
    open_.emplace(tokenizer_.grammar(), text_, std::max(16 * enough_, 2 * BpeMerger::kWindowBytes));
  }
}

std::string_view NfcStream::normalize(size_t bytes) {
  taken_.assign(text_, 0, bytes);
  text_.erase(0, bytes);
  return normalize_nfc(taken_, storage_);
}

std::string_view NfcStream::add(std::string_view text) {
  // Marks are sorted over any distance, which no bound on memory survives.
  constexpr size_t kLongestRun = size_t{8} << 20;
  const size_t before = text_.size();
  text_ += text;
  const size_t cut = last_nfc_boundary(text_, before >= 3 ? before - 3 : 0);
  if (cut > 0) return normalize(cut);
  if (text_.size() > kLongestRun) data_error("the text holds more than {} bytes of combining characters", kLongestRun);
  return {};
}

std::string_view NfcStream::finish() {
  return normalize(text_.size());
}

BpeStream::BpeStream(const BpeTokenizer& tokenizer, const StreamOptions& options)
    : tokenizer_(tokenizer), options_(options), pieces_(tokenizer, options.buffer_bytes) {
  if (tokenizer.normalizes()) nfc_.emplace();
  if (!options.look_for_special_text) return;
  for (const auto& special : tokenizer.specials().all()) {
    longest_special_ = std::max(longest_special_, special.first.size());
  }
}

void BpeStream::plain(std::string_view text, std::vector<int32_t>& ids) {
  pieces_.add(nfc_ ? nfc_->add(text) : text, ids);
}

void BpeStream::end_of_text(std::vector<int32_t>& ids) {
  if (nfc_) pieces_.add(nfc_->finish(), ids);
  pieces_.finish(ids);
}

void BpeStream::add(std::string_view piece, std::vector<int32_t>& ids) {
  if (longest_special_ == 0) return plain(piece, ids);
  unsearched_ += piece;
  search(/*last=*/false, ids);
}

void BpeStream::finish(std::vector<int32_t>& ids) {
  if (longest_special_ > 0) search(/*last=*/true, ids);
  end_of_text(ids);
}

// Matches that begin where the longest special string may still be cut off are left for later.
void BpeStream::search(bool last, std::vector<int32_t>& ids) {
  const std::string_view text = unsearched_;
  if (!last && text.size() < longest_special_) return;
  const size_t limit = last ? text.size() : text.size() - longest_special_ + 1;
  size_t done = 0;  // bytes that were handed on
  size_t from = behind_match_;
  for (auto match = tokenizer_.specials().find(text, from); match.id >= 0 && match.begin < limit;
       match = tokenizer_.specials().find(text, from)) {
    ++special_texts_;
    from = match.end;
    if (options_.special_text == SpecialText::reject) {
      data_error("the text holds {} at byte {}", text.substr(match.begin, match.end - match.begin),
                 searched_ + static_cast<int64_t>(match.begin));
    }
    if (options_.special_text == SpecialText::encode) {
      plain(text.substr(done, match.begin - done), ids);
      end_of_text(ids);
      ids.push_back(match.id);
      done = match.end;
    }
  }
  if (done < limit) {
    plain(text.substr(done, limit - done), ids);
    done = limit;
  }
  behind_match_ = from > done ? from - done : 0;
  searched_ += static_cast<int64_t>(done);
  unsearched_.erase(0, done);
}

}  // namespace megalith::data
