#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace megalith::data {

class Tokenizer;

struct CheckOptions {
  int64_t vocab_size = 0;                // 0: as the sidecar says; without one, ids only have to be 0 or above
  int32_t eod = -1;                      // every document must end with it; -1: as the sidecar says, else not checked
  bool eod_only_at_end = false;          // and nothing else may be it
  bool quick = false;                    // leaves the tokens unread, but for the ends of some documents
  const Tokenizer* tokenizer = nullptr;  // not null: must be the one that the sidecar names
  // Not null: some documents are encoded again (prepare/read/source_check.h).
  const Tokenizer* source_tokenizer = nullptr;
  int threads = 1;
  std::function<void(int64_t bytes_done)> progress;  // from several threads
};

// What is wrong with one dataset, and what is in it.
struct CheckReport {
  std::string prefix;
  std::vector<std::string> problems;
  int64_t documents = 0;
  int64_t sequences = 0;
  int64_t tokens = 0;
  int64_t bytes = 0;          // of .bin and .idx
  int64_t largest_id = -1;    // -1: not looked at
  std::string token_type;     // empty: the index could not be read
  bool has_sidecar = false;   // <prefix>.json, with checksums
  int64_t encoded_again = 0;  // documents that were compared with their source
};

// Header, dtype, counts, pointers, document array, size of .bin, ids, ends of documents, checksums of the sidecar.
CheckReport check_dataset(const std::string& prefix, const CheckOptions& options);

// Several of them, in parallel; in the order given.
std::vector<CheckReport> check_datasets(const std::vector<std::string>& prefixes, const CheckOptions& options);

// Prefixes from prefixes, names of .bin or .idx files, and directories, whose datasets come in natural order. User
// error for a directory without any.
std::vector<std::string> list_datasets(const std::vector<std::string>& paths);

}  // namespace megalith::data
