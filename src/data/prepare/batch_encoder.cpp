#include "data/prepare/batch_encoder.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "data/prepare/json/utf8_check.h"
#include "data/tokenizer/utf8_stream.h"

namespace megalith::data {

namespace {
constexpr size_t kKeptIds = size_t{4} << 20;  // memory above this is given back

template <class Stored>
std::vector<std::byte> stored_as(const std::vector<int32_t>& ids, int64_t vocab_size) {
  std::vector<std::byte> bytes(ids.size() * sizeof(Stored));
  auto* out = reinterpret_cast<Stored*>(bytes.data());
  uint32_t largest = 0;  // a negative id is a huge one
  for (size_t i = 0; i < ids.size(); ++i) {
    largest = std::max(largest, static_cast<uint32_t>(ids[i]));
    out[i] = static_cast<Stored>(ids[i]);
  }
  MEGALITH_CHECK(ids.empty() || largest < vocab_size, "token id {} outside of the vocabulary of {}",
                 static_cast<int32_t>(largest), vocab_size);
  return bytes;
}

std::string_view without_carriage_return(std::string_view line) {
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}
}  // namespace

std::vector<std::byte> stored_tokens(const std::vector<int32_t>& ids, TokenType type, int64_t vocab_size) {
  return type == TokenType::uint16 ? stored_as<uint16_t>(ids, vocab_size) : stored_as<int32_t>(ids, vocab_size);
}

int64_t EncodedBatch::bytes() const {
  size_t sum = 0;
  for (const Key& key : keys) sum += key.tokens.size() + key.lengths.size() * sizeof(int32_t);
  return static_cast<int64_t>(sum);
}

std::vector<int32_t> ids_of(const EncodedBatch::Key& key) {
  std::vector<int32_t> ids(static_cast<size_t>(key.token_count));
  if (key.tokens.size() == ids.size() * sizeof(int32_t)) {
    std::memcpy(ids.data(), key.tokens.data(), key.tokens.size());
    return ids;
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    uint16_t id = 0;
    std::memcpy(&id, key.tokens.data() + i * sizeof(id), sizeof(id));
    ids[i] = id;
  }
  return ids;
}

BatchEncoder::BatchEncoder(const Tokenizer& tokenizer, const EncodeOptions& options)
    : tokenizer_(tokenizer),
      options_(options),
      type_(token_type_for_vocab(tokenizer.vocab_size())),
      ids_(options.json_keys.size()) {}

// How many special strings were found.
int64_t BatchEncoder::encode_text(std::string_view text, std::vector<int32_t>& ids) const {
  if (options_.look_for_special_text) return tokenizer_.encode_with_specials(text, ids, options_.special_text);
  tokenizer_.encode(text, ids);
  return 0;
}

bool BatchEncoder::make_valid(std::string_view& text, RejectedLine& rejected) {
  Utf8Check check;
  check.add(text);
  if (check.valid()) return true;
  if (options_.bad_text == BadText::replace) {
    repaired_ = replace_ill_formed_utf8(text);
    text = repaired_;
    return true;
  }
  const std::string_view before = text.substr(0, static_cast<size_t>(check.bad_offset()));
  rejected.line += std::count(before.begin(), before.end(), '\n');
  rejected.offset += std::ssize(before);
  return false;
}

bool BatchEncoder::add_document(EncodedBatch& out, std::optional<std::string_view> text, RejectedLine rejected) {
  std::vector<size_t>& begins = begins_;
  begins.clear();
  for (const auto& ids : ids_) begins.push_back(ids.size());
  const auto refuse = [&](BadLine kind, std::string detail) {
    for (size_t key = 0; key < ids_.size(); ++key) ids_[key].resize(begins[key]);
    rejected.kind = kind;
    rejected.detail = std::move(detail);
    out.bad.push_back(std::move(rejected));
    return false;
  };
  if (text && !make_valid(*text, rejected)) return refuse(BadLine::invalid_utf8, "");
  int64_t text_bytes = 0;
  int64_t special_texts = 0;
  for (size_t key = 0; key < ids_.size(); ++key) {
    const std::string_view document = text ? *text : fields_->text(key);
    auto& ids = ids_[key];
    if (options_.bos) ids.push_back(*options_.bos);
    const size_t begin = ids.size();
    try {
      special_texts += encode_text(document, ids);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      return refuse(BadLine::special_text, error.what());
    }
    if (ids.size() == begin) {
      ids.resize(begins[key]);  // an empty document has neither a first nor a last token
    } else if (options_.append_eod) {
      ids.push_back(tokenizer_.eod());
    }
    const auto length = static_cast<int64_t>(ids.size() - begins[key]);
    if (length > options_.max_document_tokens) {
      return refuse(BadLine::too_many_tokens, fmt::format("{} in one document, and the format can count {}", length,
                                                          options_.max_document_tokens));
    }
    text_bytes += std::ssize(document);
  }
  for (size_t key = 0; key < ids_.size(); ++key) {
    const size_t length = ids_[key].size() - begins[key];
    out.keys[key].lengths.push_back(static_cast<int32_t>(length));
    if (length == 0) ++out.keys[key].empty_documents;
  }
  out.text_bytes += text_bytes;
  out.special_texts += special_texts;
  ++out.documents;
  return true;
}

void BatchEncoder::encode_lines(const RawBatch& batch, EncodedBatch& out) {
  if (!fields_) fields_.emplace(options_.json_keys, options_.keep, options_.bad_text);
  const std::string_view text = batch.text.view();
  for (size_t begin = 0; begin < text.size();) {
    const auto* found = static_cast<const char*>(std::memchr(text.data() + begin, '\n', text.size() - begin));
    const size_t end = found == nullptr ? text.size() : static_cast<size_t>(found - text.data());
    const std::string_view line = without_carriage_return(text.substr(begin, end - begin));
    RejectedLine rejected{.line = ++out.lines, .offset = batch.offset + static_cast<int64_t>(begin)};
    begin = end + 1;
    if (is_blank(line)) continue;
    if (std::ssize(line) > options_.max_document_bytes) {
      rejected.kind = BadLine::too_long;
      out.bad.push_back(std::move(rejected));
    } else {
      const LineVerdict verdict = fields_->read(line);
      if (verdict == LineVerdict::document) {
        add_document(out, std::nullopt, std::move(rejected));
      } else if (verdict == LineVerdict::filtered) {
        ++out.filtered;
      } else {
        rejected.kind = fields_->problem().kind;
        rejected.detail = fields_->problem().detail;
        out.bad.push_back(std::move(rejected));
      }
    }
    if (!out.bad.empty() && options_.on_error == OnError::fail) return;
  }
}

void BatchEncoder::encode_paragraphs(const RawBatch& batch, EncodedBatch& out) {
  const std::string_view text = batch.text.view();
  size_t document_begin = 0;
  size_t document_end = 0;  // equal to the begin: none is open
  RejectedLine rejected;
  const auto end_document = [&] {
    if (document_end == document_begin) return;
    const std::string_view document = text.substr(document_begin, document_end - document_begin);
    if (std::ssize(document) > options_.max_document_bytes) {
      rejected.kind = BadLine::too_long;
      out.bad.push_back(rejected);
    } else {
      add_document(out, document, rejected);
    }
    document_begin = document_end;
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    ++out.lines;
    if (is_blank(text.substr(begin, end - begin))) {
      end_document();
      document_begin = document_end = end;
    } else {
      if (document_end == document_begin) {
        document_begin = begin;
        rejected = {.line = out.lines, .offset = batch.offset + static_cast<int64_t>(begin)};
      }
      document_end = end;
    }
    begin = end + 1;
  }
  end_document();
}

void BatchEncoder::store(EncodedBatch& out) {
  for (size_t key = 0; key < ids_.size(); ++key) {
    auto& ids = ids_[key];
    out.keys[key].token_count = std::ssize(ids);
    out.keys[key].tokens = stored_tokens(ids, type_, tokenizer_.vocab_size());
    ids.clear();
    if (ids.capacity() > kKeptIds) ids.shrink_to_fit();
  }
}

EncodedBatch BatchEncoder::encode(const RawBatch& batch, Cut cut) {
  EncodedBatch out;
  out.keys.resize(ids_.size());
  for (auto& ids : ids_) ids.reserve(std::min(batch.text.size(), kKeptIds));
  if (batch.too_long) {
    out.lines = 1;
    out.bad.push_back({.kind = BadLine::too_long, .line = 1, .offset = batch.offset});
  } else if (cut == Cut::lines) {
    encode_lines(batch, out);
  } else if (cut == Cut::blank_lines) {
    encode_paragraphs(batch, out);
  } else {
    out.lines = 1;
    if (std::ssize(batch.text.view()) > options_.max_document_bytes) {
      out.bad.push_back({.kind = BadLine::too_long, .line = 1, .offset = batch.offset});
    } else {
      add_document(out, batch.text.view(), {.line = 1, .offset = batch.offset});
    }
  }
  store(out);
  return out;
}

}  // namespace megalith::data
