#include <cstdint>
#include <string_view>

#include "core/error.h"
#include "data/prepare/batch_encoder.h"
#include "data/prepare/long_line_testing.h"

// The first byte picks the policies; the rest is the text of a file. Whatever it holds, every line is a document,
// filtered or bad, each document is valid UTF-8, and a line that comes in parts gives what it gives as a whole.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace megalith::data;
  if (size == 0) return 0;
  static const ByteTokenizer tokenizer;
  EncodeOptions options;
  options.on_error = OnError::skip;
  options.bad_text = data[0] % 2 == 0 ? BadText::reject : BadText::replace;
  if (data[0] % 4 >= 2) options.json_keys = {"text", "a.b"};
  if (data[0] % 8 >= 4) options.keep = {{"m", {"x", "1"}}};
  options.max_document_bytes = 1 << 16;
  RawBatch batch;
  batch.text.append({reinterpret_cast<const char*>(data + 1), size - 1});
  const EncodedBatch encoded = BatchEncoder(tokenizer, options).encode(batch, Cut::lines);
  if (encoded.documents + encoded.filtered + static_cast<int64_t>(encoded.bad.size()) > encoded.lines) __builtin_trap();
  for (const EncodedBatch::Key& key : encoded.keys) {
    if (static_cast<int64_t>(key.lengths.size()) != encoded.documents) __builtin_trap();
    size_t sum = 0;
    for (const int32_t length : key.lengths) sum += static_cast<size_t>(length);
    if (sum * 2 != key.tokens.size()) __builtin_trap();
  }
  BatchEncoder(tokenizer, {.on_error = OnError::skip}).encode(batch, Cut::blank_lines);
  std::string_view rest = batch.text.view();
  for (size_t end = 0; end != std::string_view::npos && rest.size() < 1000;
       rest.remove_prefix(std::min(end + 1, rest.size()))) {
    end = rest.find('\n');
    if (!roads_differ(tokenizer, options, rest.substr(0, end), 1 + data[0] / 8).empty()) __builtin_trap();
  }
  return 0;
}
