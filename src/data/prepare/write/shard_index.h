#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "data/files/token_type.h"

namespace megalith::data {

struct WrittenFile {
  int64_t bytes = 0;
  std::string digest;
};

// Writes Megatron's index (see IndexedDataset for its layout) of documents of one sequence each, whose lengths lie in
// the file `lengths` as int32; 0 is a document without a sequence. Reads them in pieces, so that memory does not grow
// with the number of documents. Syncs.
WrittenFile write_index(const std::filesystem::path& path, const std::filesystem::path& lengths, TokenType type);

}  // namespace megalith::data
