#pragma once

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <map>
#include <string>
#include <vector>

#include "data/data_testing.h"
#include "data/files/indexed_dataset.h"
#include "data/prepare/prepare.h"

namespace megalith::data {

inline std::string gzip_of(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct ZstdParameters {
  bool checksum = false;
  bool content_size = true;
  int window_log = 0;  // 0: libzstd's choice
};

inline std::string zstd_of(const std::string& text, const ZstdParameters& parameters = {}) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, parameters.checksum ? 1 : 0);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, parameters.content_size ? 1 : 0);
  if (parameters.window_log > 0) {
    ZSTD_CCtx_setParameter(context, ZSTD_c_enableLongDistanceMatching, 1);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, parameters.window_log);
  }
  std::string out(ZSTD_compressBound(text.size()) + 64, '\0');
  ZSTD_inBuffer in{text.data(), text.size(), 0};
  ZSTD_outBuffer buffer{out.data(), out.size(), 0};
  // In two calls the size of the content is not known when the header is written.
  if (!parameters.content_size) ZSTD_compressStream2(context, &buffer, &in, ZSTD_e_continue);
  EXPECT_EQ(ZSTD_compressStream2(context, &buffer, &in, ZSTD_e_end), 0u);
  ZSTD_freeCCtx(context);
  out.resize(buffer.pos);
  return out;
}

inline std::string skippable_frame(const std::string& content) {
  const auto size = static_cast<uint32_t>(content.size());
  return std::string("\x50\x2A\x4D\x18", 4) + std::string(reinterpret_cast<const char*>(&size), 4) + content;
}

inline bool has_json_reader() {
  try {
    require_json_reader();
    return true;
  } catch (const Error&) {
    return false;
  }
}
#define MEGALITH_JSON_OR_SKIP() \
  if (!has_json_reader()) GTEST_SKIP() << "skipped: this build has no JSON reader"

using Texts = std::vector<std::string>;

// The documents of a dataset of bytes, with '$' for eod.
inline Texts documents_of(const std::string& prefix) {
  const IndexedDataset dataset(prefix);
  Texts texts;
  for (int64_t i = 0; i < dataset.documents(); ++i) {
    auto& text = texts.emplace_back();
    for (int64_t s = dataset.document_begin(i); s < dataset.document_begin(i + 1); ++s) {
      std::vector<int32_t> ids(static_cast<size_t>(dataset.length(s)));
      dataset.read(s, 0, ids);
      for (const int32_t id : ids) text += id == ByteTokenizer::kEod ? '$' : static_cast<char>(id);
    }
  }
  return texts;
}

// Name and content of every file in the directory (not below it) whose name begins with `start`.
inline std::map<std::string, std::string> files_of(const std::filesystem::path& directory,
                                                   const std::string& start = "") {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name.starts_with(start)) files[name] = read_bytes(entry.path().string());
  }
  return files;
}

inline std::vector<std::string> names_of(const std::map<std::string, std::string>& files) {
  std::vector<std::string> names;
  for (const auto& file : files) names.push_back(file.first);
  return names;
}

inline std::string line_of(const std::string& text) {
  return fmt::format("{{\"text\": \"{}\"}}\n", text);
}

}  // namespace megalith::data
