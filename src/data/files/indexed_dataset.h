#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/file.h"
#include "data/files/mapped_file.h"
#include "data/files/token_type.h"
#include "data/order/index_file.h"
#include "data/order/sequence_source.h"

namespace megalith::data {

struct IndexedDatasetOptions {
  // Map `.bin` instead of reading it piece by piece. Reading is the default: a page fault on a network file system
  // stalls the whole process, and a file cut short under a mapping kills it.
  bool map_tokens = false;
  // The number of tokens, where all of the index was checked before and has not changed since: opening then takes no
  // longer for a billion sequences than for one.
  std::optional<int64_t> known_tokens;
};

// A reader of Megatron's `<prefix>.idx` and `<prefix>.bin`. All integers are little-endian, nothing is aligned:
//
//   0   9   "MMIDIDX\0\0"              34          4 S   int32 sequence lengths
//   9   8   uint64 version, 1          34 +  4 S   8 S   int64 byte offsets in `.bin`
//   17  1   uint8 dtype code           34 + 12 S   8 D   int64 document array: first sequence of each document, then S
//   18  8   uint64 S, sequences
//   26  8   uint64 D, documents + 1
//
// fairseq's variant without D and the document array is read too (every sequence is a document), and so are DeepSpeed's
// dtype codes where the size of `.bin` tells them apart. Everything is checked when the file is opened; what does not
// fit is refused with the file's name and the reason.
class IndexedDataset : public SequenceSource {
 public:
  explicit IndexedDataset(const std::string& prefix, IndexedDatasetOptions options = {});
  IndexedDataset(const std::filesystem::path& index_path, const std::filesystem::path& token_path,
                 IndexedDatasetOptions options = {});

  const std::string& name() const override { return name_; }
  int64_t sequences() const override { return sequences_; }
  int32_t length(int64_t sequence) const override;
  void read(int64_t sequence, int64_t offset, std::span<int32_t> out) const override;

  int64_t documents() const { return document_entries_ == 0 ? sequences_ : document_entries_ - 1; }
  // The first sequence of a document; of documents(): the number of sequences.
  int64_t document_begin(int64_t document) const;
  int64_t tokens() const { return tokens_; }
  TokenType token_type() const { return type_; }
  const std::filesystem::path& index_path() const { return index_path_; }
  const std::filesystem::path& token_path() const { return token_file_.path(); }

  // A hash of the header and all lengths: what the order of samples depends on.
  IndexKey content_hash() const;

 private:
  void parse_header();
  void parse_counts();
  void count_tokens();
  void choose_token_type(int64_t token_bytes);
  void check_pointers() const;
  void check_documents() const;
  int64_t pointer(int64_t sequence) const;

  std::string name_;
  std::filesystem::path index_path_;
  MappedFile index_;
  File token_file_;
  MappedFile mapped_tokens_;  // empty unless asked for
  bool map_tokens_;
  int code_ = 0;
  TokenType type_ = TokenType::uint16;
  int64_t sequences_ = 0;
  int64_t document_entries_ = 0;  // 0: fairseq's variant
  int64_t lengths_at_ = 0;        // byte offset of the lengths in the index
  int64_t tokens_ = 0;
};

}  // namespace megalith::data
