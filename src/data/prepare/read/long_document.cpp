#include "data/prepare/read/long_document.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace megalith::data {

LongLine::LongLine(const FieldRules& rules, BadText bad_text, int64_t max_bytes, JsonLineStream::Receiver& receiver)
    : rules_(rules), max_bytes_(max_bytes), json_(rules.paths(), bad_text, rules.longest_kept_value() + 1, receiver) {}

void LongLine::add(std::string_view bytes) {
  if (bytes.empty()) return;
  bytes_ += std::ssize(bytes);
  carriage_return_ = bytes.back() == '\r';
  blank_ = blank_ && is_blank(bytes);
  if (bytes_ <= max_bytes_ + 1) json_.add(bytes);
}

LongLine::Verdict LongLine::finish() {
  if (blank_) return {.blank = true};
  if (bytes_ - (carriage_return_ ? 1 : 0) > max_bytes_)
    return {.verdict = LineVerdict::bad, .problem = {BadLine::too_long, ""}};
  if (auto problem = json_.finish()) return {.verdict = LineVerdict::bad, .problem = std::move(*problem)};
  Verdict verdict;
  verdict.verdict = rules_.judge(json_.values(), verdict.problem);
  return verdict;
}

LongDocument::LongDocument(const Tokenizer& tokenizer, const EncodeOptions& options, Cut cut, int64_t offset)
    : tokenizer_(tokenizer),
      options_(options),
      rules_(options.json_keys, options.keep),
      offset_(offset),
      type_(token_type_for_vocab(tokenizer.vocab_size())),
      texts_(options.json_keys.size()) {
  if (cut == Cut::lines) {
    line_.emplace(rules_, options.bad_text, options.max_document_bytes, static_cast<JsonLineStream::Receiver&>(*this));
  }
  for (Text& text : texts_) begin(text);
}

void LongDocument::begin(Text& text) {
  const bool again = text.tokens > 0 || text.begins_again;
  text = {};
  text.begins_again = again;
  text.stream = tokenizer_.open_stream({.look_for_special_text = options_.look_for_special_text,
                                        .special_text = options_.special_text,
                                        .buffer_bytes = options_.stream_buffer_bytes});
}

void LongDocument::forget(size_t path) {
  for (size_t key = 0; key < texts_.size(); ++key) {
    if (rules_.path_of_key(key) == path) begin(texts_[key]);
  }
}

void LongDocument::add_text(size_t path, std::string_view text) {
  for (size_t key = 0; key < texts_.size(); ++key) {
    if (rules_.path_of_key(key) == path) add(texts_[key], text);
  }
}

// A text that is refused is not encoded further, but of one with too many tokens their number is wanted.
template <class Encode>
void LongDocument::encode(Text& text, Encode&& encode) {
  if (!text.refusal.empty()) return;
  const size_t before = text.ids.size();
  try {
    encode();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    text.refusal = error.what();
    return;
  }
  const size_t added = text.ids.size() - before;
  if (added == 0) return;
  if (text.tokens == 0 && options_.bos) {
    text.ids.insert(text.ids.begin() + static_cast<std::ptrdiff_t>(before), *options_.bos);
    ++text.tokens;
  }
  text.tokens += static_cast<int64_t>(added);
  if (text.tokens > options_.max_document_tokens) text.ids.clear();
}

void LongDocument::add(Text& text, std::string_view piece) {
  text.bytes += std::ssize(piece);
  encode(text, [&] { text.stream->add(piece, text.ids); });
}

void LongDocument::finish(Text& text) {
  encode(text, [&] { text.stream->finish(text.ids); });
  text.special_texts = text.stream->special_texts();
  if (text.tokens == 0 || !options_.append_eod) return;
  text.ids.push_back(tokenizer_.eod());
  ++text.tokens;
}

void LongDocument::add_to_file(std::string_view bytes) {
  const int64_t before = file_bytes_;
  file_bytes_ += std::ssize(bytes);
  if (file_bytes_ > options_.max_document_bytes) return;
  std::string repaired;
  if (options_.bad_text == BadText::replace) {
    repaired = repaired_.add(bytes);
    bytes = repaired;
  } else if (utf8_.valid_so_far()) {
    utf8_.add(bytes);
    const int64_t good = utf8_.valid_so_far() ? std::ssize(bytes) : std::max<int64_t>(utf8_.bad_offset() - before, 0);
    lines_before_bad_ += std::count(bytes.begin(), bytes.begin() + good, '\n');
  }
  if (!utf8_.valid_so_far()) return;
  for (Text& text : texts_) add(text, bytes);
}

EncodedBatch LongDocument::add(const RawBatch& part) {
  EncodedBatch out;
  out.keys.resize(texts_.size());
  out.begins_document = part.first_part;
  std::string_view bytes = part.text.view();
  if (line_) {
    if (part.last_part && bytes.ends_with('\n')) bytes.remove_suffix(1);
    line_->add(bytes);
  } else {
    add_to_file(bytes);
  }
  if (part.last_part) end(out);
  store(out);
  return out;
}

// What is wrong with the document, in the order in which BatchEncoder finds it.
std::optional<RejectedLine> LongDocument::judge(EncodedBatch& out, bool& is_document) {
  RejectedLine rejected{.line = 1, .offset = offset_};
  const auto refuse = [&](BadLine kind, std::string detail) {
    rejected.kind = kind;
    rejected.detail = std::move(detail);
    return rejected;
  };
  is_document = false;
  if (line_) {
    LongLine::Verdict line = line_->finish();
    if (line.blank) return std::nullopt;
    if (line.verdict == LineVerdict::bad) return refuse(line.problem.kind, std::move(line.problem.detail));
    if (line.verdict == LineVerdict::filtered) {
      ++out.filtered;
      return std::nullopt;
    }
  } else if (file_bytes_ > options_.max_document_bytes) {
    return refuse(BadLine::too_long, "");
  } else if (options_.bad_text == BadText::reject && !utf8_.valid()) {
    rejected.line += lines_before_bad_;
    rejected.offset += utf8_.bad_offset();
    return refuse(BadLine::invalid_utf8, "");
  } else if (const std::string rest = repaired_.finish(); !rest.empty()) {
    for (Text& text : texts_) add(text, rest);
  }
  for (Text& text : texts_) {
    finish(text);
    if (!text.refusal.empty()) return refuse(BadLine::special_text, text.refusal);
    if (text.tokens > options_.max_document_tokens) {
      return refuse(BadLine::too_many_tokens, fmt::format("{} in one document, and the format can count {}",
                                                          text.tokens, options_.max_document_tokens));
    }
  }
  is_document = true;
  return std::nullopt;
}

void LongDocument::end(EncodedBatch& out) {
  out.lines = 1;
  bool is_document = false;
  if (auto bad = judge(out, is_document)) out.bad.push_back(std::move(*bad));
  if (!is_document) {
    out.drops_document = true;
    for (Text& text : texts_) text.ids.clear();
    return;
  }
  for (size_t key = 0; key < texts_.size(); ++key) {
    const Text& text = texts_[key];
    out.keys[key].lengths.push_back(static_cast<int32_t>(text.tokens));
    out.keys[key].token_count = text.tokens;
    out.keys[key].empty_documents = text.tokens == 0 ? 1 : 0;
    out.text_bytes += text.bytes;
    out.special_texts += text.special_texts;
  }
  out.documents = 1;
}

void LongDocument::store(EncodedBatch& out) {
  for (size_t key = 0; key < texts_.size(); ++key) {
    Text& text = texts_[key];
    out.keys[key].tokens = stored_tokens(text.ids, type_, tokenizer_.vocab_size());
    out.keys[key].begins_again = std::exchange(text.begins_again, false);
    text.ids.clear();
  }
}

}  // namespace megalith::data
