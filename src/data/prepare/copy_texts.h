#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/prepare/json/document_fields.h"
#include "data/prepare/prepare.h"
#include "data/prepare/read/input_list.h"

namespace megalith::data {

// What one pass of texts into files reports.
struct CopyCounts {
  int64_t outputs = 0;         // of this worker
  int64_t outputs_before = 0;  // of those, what was there already
  int64_t lines = 0;           // written by this run
  int64_t filtered = 0;
  int64_t bytes_in = 0;   // of input files, as they lie on disk
  int64_t bytes_out = 0;  // of text
  BadLines skipped;
};

struct CopyOptions {
  std::vector<std::string> inputs;  // files and glob patterns, put into natural order
  std::filesystem::path output_directory;
  std::vector<FieldFilter> keep;  // empty: every line as it is, JSON or not
  OnError on_error = OnError::fail;
  ReadOptions read;
  int64_t max_document_bytes = int64_t{4} << 30;
  int64_t long_document_bytes = int64_t{4} << 20;  // longer lines are copied while they are read
  int threads = 1;
  WorkerShare worker;
  bool overwrite = false;
  std::function<void(const CopyCounts&)> progress;  // after each output; from one thread at a time
  std::function<void(const std::string&)> warn;
};

// Decompresses each file into the directory under its name without .gz or .zst. Lines are kept byte by byte. An output
// gets its name when it is whole; a record `.megalith/<name>.json` in the directory says from what it was made, and
// only that makes a later run pass over it.
CopyCounts extract_texts(const CopyOptions& options);

// Joins `files_per_chunk` files (compressed or not) into each of `<directory>/<stem>_<i>.jsonl`, counted from 0. A last
// line without LF gets one.
CopyCounts concat_texts(const CopyOptions& options, int64_t files_per_chunk, const std::string& stem = "train_chunk");

}  // namespace megalith::data
