#pragma once

#include <cstdint>
#include <span>

#include "data/files/indexed_dataset.h"

namespace megalith::data {

// The last sequence of a document that holds a token; -1: none does.
int64_t last_sequence_with_tokens(const IndexedDataset& dataset, int64_t document);

// Looks at all tokens of a `.bin` file, given block by block from its beginning in whole tokens.
class TokenScan {
 public:
  struct Options {
    int64_t vocab_size = 0;  // 0: none
    int32_t eod = -1;        // -1: none
  };
  struct Finding {
    int64_t count = 0;
    int64_t value = 0;     // of the first, as all below
    int64_t sequence = 0;  // of open documents: the document
    int64_t position = 0;
  };

  TokenScan(const IndexedDataset& dataset, const Options& options);

  void add(std::span<const std::byte> block);

  int64_t largest_id() const { return largest_; }
  const Finding& bad_ids() const { return bad_; }
  const Finding& open_documents() const { return open_; }
  int64_t inner_eods() const { return eods_ - closed_documents_; }

 private:
  template <class T>
  void scan(std::span<const std::byte> block);
  template <class T>
  void find_bad(std::span<const std::byte> block);
  template <class T>
  void check_ends(std::span<const std::byte> block);
  void next_document();

  const IndexedDataset& dataset_;
  Options options_;
  int64_t tokens_ = 0;  // in the blocks before
  int64_t largest_ = -1;
  int64_t eods_ = 0;
  int64_t closed_documents_ = 0;
  Finding bad_;
  Finding open_;

  // The document whose end comes next, and where its last token is in the file; -1 when there is none.
  int64_t document_ = -1;
  int64_t document_end_ = -1;
  int64_t sequence_ = 0;  // the first one that does not belong to the documents so far
  int64_t sequence_begin_ = 0;
};

}  // namespace megalith::data
