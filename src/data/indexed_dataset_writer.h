#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/file.h"
#include "data/token_type.h"

namespace megalith::data {

// Writes `<prefix>.bin` and `<prefix>.idx`, byte for byte as Megatron does. Until finish() both carry the suffix
// `.part`, locked against a second writer; without it they vanish with the writer.
class IndexedDatasetWriter {
 public:
  IndexedDatasetWriter(std::string prefix, int64_t vocab_size);
  ~IndexedDatasetWriter();
  IndexedDatasetWriter(const IndexedDatasetWriter&) = delete;
  IndexedDatasetWriter& operator=(const IndexedDatasetWriter&) = delete;

  // One document of one sequence. An empty one is counted as a document without a sequence.
  void add_document(std::span<const int32_t> tokens);
  // Makes the files durable and gives them their names; replaces files of that name.
  void finish();

  const std::string& prefix() const { return prefix_; }
  TokenType token_type() const { return type_; }
  int64_t documents() const { return std::ssize(document_begins_) - 1; }
  int64_t tokens() const { return tokens_; }

 private:
  void flush();
  void write_index();

  std::string prefix_;
  int64_t vocab_size_;
  TokenType type_;
  std::optional<File> tokens_file_;
  std::optional<File> index_file_;
  std::vector<std::byte> buffer_;
  std::vector<int32_t> lengths_;
  std::vector<int64_t> document_begins_{0};
  int64_t tokens_ = 0;
  bool tokens_named_ = false;
  bool finished_ = false;
};

}  // namespace megalith::data
