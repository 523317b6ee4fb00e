#pragma once

#include <cstdint>
#include <filesystem>

#include "data/tokenizer/tokenizer.h"

namespace megalith::data {

struct BenchPrepareOptions {
  std::filesystem::path directory;          // for the files; they are removed afterwards
  std::filesystem::path text;               // what to use as text, repeated as needed; empty: made-up English
  int64_t text_bytes = int64_t{256} << 20;  // per thread
  int64_t document_bytes = 4096;            // about
  int threads = 1;
  int compression_level = 3;
};

// Rates in MB (10^6 bytes) of text per second and thread.
struct BenchPrepareResult {
  int64_t text_bytes = 0;
  int64_t compressed_bytes = 0;
  int64_t tokens = 0;
  double decompress = 0.0;   // .jsonl.zst read by one thread
  double extract = 0.0;      // and its documents taken out, by one thread
  double prepare = 0.0;      // .jsonl.zst to .bin and .idx, synced, by all threads
  double prepare_cpu = 0.0;  // the same per second of processor time: what a machine that does other work would hide
};

// Measures the road from `.jsonl.zst` to `.bin`, stage by stage. The files lie in the page cache.
BenchPrepareResult bench_prepare(const Tokenizer& tokenizer, const BenchPrepareOptions& options);

}  // namespace megalith::data
