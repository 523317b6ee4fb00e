#pragma once

#include "data/prepare/read/byte_source.h"
#include "data/prepare/read/file_blocks.h"

namespace megalith::data {

// Several members one after the other are one text.
std::unique_ptr<ByteSource> make_gzip_source(FileBlocks blocks);
// Several frames one after the other are one text; skippable frames are skipped.
std::unique_ptr<ByteSource> make_zstd_source(FileBlocks blocks, int window_log);

}  // namespace megalith::data
