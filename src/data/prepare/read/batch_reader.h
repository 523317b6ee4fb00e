#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>

#include "data/prepare/read/byte_source.h"
#include "data/prepare/read/text_buffer.h"

namespace megalith::data {

// Where documents may end.
enum class Cut {
  lines,        // at LF
  blank_lines,  // at lines of nothing but white space
  whole_file,
};

bool is_blank(std::string_view line);

// Whole documents that lie one after the other in a file, or a part of one that is long.
struct RawBatch {
  TextBuffer text;
  int64_t offset = 0;            // of the first byte in the (decompressed) text of the file
  int64_t consumed = 0;          // bytes of the file used so far
  bool too_long = false;         // stands for one document above the limit, which was passed over
  bool byte_order_mark = false;  // one was found at the start of the file and left out
  bool last = false;             // the file ends here
  bool part = false;             // of a long document; the next batches hold the rest
  bool first_part = false;
  bool last_part = false;  // with the newline that ends the document, if there is one
};

struct BatchOptions {
  ReadOptions read;
  int64_t batch_bytes = int64_t{1} << 20;  // a batch is longer only if one document is
  int64_t max_document_bytes = std::numeric_limits<int64_t>::max();
  // A document that does not end within this many bytes comes in parts, however long it is; paragraphs never do.
  int64_t long_document_bytes = std::numeric_limits<int64_t>::max();
};

// Cuts the text of a file into batches. How it is cut depends on the file and the options alone.
class BatchReader {
 public:
  BatchReader(const std::filesystem::path& path, Cut cut, const BatchOptions& options);
  BatchReader(const std::filesystem::path& path, std::unique_ptr<ByteSource> source, Cut cut,
              const BatchOptions& options);

  // Not to be called again after the last batch, which may be empty.
  RawBatch next();

 private:
  bool fill(TextBuffer& text);
  void refuse_utf16(std::string_view text) const;
  void skip_byte_order_mark(RawBatch& batch);
  void pass_over(RawBatch& batch);
  RawBatch next_part();
  void end_batch(RawBatch& batch, size_t cut);

  std::filesystem::path path_;
  std::unique_ptr<ByteSource> source_;
  Cut cut_;
  BatchOptions options_;
  std::string carry_;  // what came behind the last cut
  int64_t offset_ = 0;
  bool in_long_document_ = false;
};

}  // namespace megalith::data
