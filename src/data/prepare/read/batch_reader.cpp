#include "data/prepare/read/batch_reader.h"

#include <cstring>

#include "core/error.h"

namespace megalith::data {

namespace {
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

size_t after_last_newline(std::string_view text, size_t from) {
  const void* found = text.size() > from ? ::memrchr(text.data() + from, '\n', text.size() - from) : nullptr;
  return found == nullptr ? 0 : static_cast<size_t>(static_cast<const char*>(found) - text.data()) + 1;
}

// Behind the last blank line that ends at or after `from`; 0 if there is none.
size_t after_last_blank_line(std::string_view text, size_t from) {
  size_t end = after_last_newline(text, 0);
  while (end > from) {
    const size_t begin = after_last_newline(text.substr(0, end - 1), 0);
    if (is_blank(text.substr(begin, end - 1 - begin))) return end;
    end = begin;
  }
  return 0;
}

size_t find_cut(std::string_view text, Cut cut, size_t from) {
  switch (cut) {
    case Cut::lines:
      return after_last_newline(text, from);
    case Cut::blank_lines:
      return after_last_blank_line(text, from);
    case Cut::whole_file:
      return 0;
  }
  return 0;
}
}  // namespace

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\f\v") == std::string_view::npos;
}

BatchReader::BatchReader(const std::filesystem::path& path, Cut cut, const BatchOptions& options)
    : BatchReader(path, open_byte_source(path, options.read), cut, options) {}

BatchReader::BatchReader(const std::filesystem::path& path, std::unique_ptr<ByteSource> source, Cut cut,
                         const BatchOptions& options)
    : path_(path), source_(std::move(source)), cut_(cut), options_(options) {}

// One more piece; false at the end of the file.
bool BatchReader::fill(TextBuffer& text) {
  auto room = text.room(static_cast<size_t>(options_.batch_bytes));
  while (!room.empty()) {
    const size_t count = source_->read(room);
    if (count == 0) return false;
    text.grow(count);
    room = room.subspan(count);
  }
  return true;
}

void BatchReader::refuse_utf16(std::string_view text) const {
  if (!text.starts_with("\xFF\xFE") && !text.starts_with("\xFE\xFF")) return;
  data_error("{0}: byte 0: this looks like UTF-16, UTF-8 is expected: iconv -f UTF-16 -t UTF-8 {0} turns it into that",
             path_.string());
}

void BatchReader::skip_byte_order_mark(RawBatch& batch) {
  if (!batch.text.view().starts_with(kByteOrderMark)) return;
  const size_t kept = batch.text.size() - kByteOrderMark.size();
  std::memmove(batch.text.data(), batch.text.data() + kByteOrderMark.size(), kept);
  batch.text.shrink(kept);
  batch.byte_order_mark = true;
  offset_ = batch.offset = std::ssize(kByteOrderMark);
}

void BatchReader::end_batch(RawBatch& batch, size_t cut) {
  carry_ = batch.text.view().substr(cut);
  batch.text.shrink(cut);
  offset_ += static_cast<int64_t>(cut);
  batch.consumed = source_->consumed();
}

// Reads on to the end of the document without keeping it.
void BatchReader::pass_over(RawBatch& batch) {
  constexpr size_t kContext = size_t{1} << 16;  // more than a blank line is long
  batch.too_long = true;
  for (;;) {
    if (batch.text.size() > kContext) {
      const size_t dropped = batch.text.size() - kContext;
      std::memmove(batch.text.data(), batch.text.data() + dropped, kContext);
      batch.text.shrink(kContext);
      offset_ += static_cast<int64_t>(dropped);
    }
    const size_t from = batch.text.size();
    const bool more = fill(batch.text);
    // The first place where the document can end is wanted here, not the last one.
    size_t cut = 0;
    for (size_t end = from; cut == 0 && cut_ != Cut::whole_file;) {
      end = batch.text.view().find('\n', end);
      if (end == std::string_view::npos) break;
      ++end;
      cut = find_cut(batch.text.view().substr(0, end), cut_, end - 1);
    }
    if (cut == 0 && more) continue;
    batch.last = cut == 0;
    end_batch(batch, cut == 0 ? batch.text.size() : cut);
    batch.text.shrink(0);
    return;
  }
}

RawBatch BatchReader::next_part() {
  RawBatch batch;
  batch.part = true;
  batch.offset = offset_;
  const bool more = fill(batch.text);
  const size_t newline = cut_ == Cut::lines ? batch.text.view().find('\n') : std::string_view::npos;
  const bool found = newline != std::string_view::npos;
  batch.last_part = found || !more;
  batch.last = !more && (!found || newline + 1 == batch.text.size());
  in_long_document_ = !batch.last_part;
  end_batch(batch, found ? newline + 1 : batch.text.size());
  return batch;
}

RawBatch BatchReader::next() {
  if (in_long_document_) return next_part();
  RawBatch batch;
  batch.offset = offset_;
  batch.text.append(carry_);
  size_t searched = 0;
  for (;;) {
    const bool more = fill(batch.text);
    if (offset_ == 0 && searched == 0) {
      refuse_utf16(batch.text.view());
      skip_byte_order_mark(batch);
    }
    if (!more) {
      batch.last = true;
      end_batch(batch, batch.text.size());
      return batch;
    }
    const size_t cut = find_cut(batch.text.view(), cut_, searched);
    if (cut > 0) {
      end_batch(batch, cut);
      return batch;
    }
    searched = batch.text.size();
    if (static_cast<int64_t>(searched) > options_.long_document_bytes && cut_ != Cut::blank_lines) {
      batch.part = batch.first_part = in_long_document_ = true;
      end_batch(batch, searched);
      return batch;
    }
    if (static_cast<int64_t>(searched) > options_.max_document_bytes) {
      pass_over(batch);
      return batch;
    }
  }
}

}  // namespace megalith::data
