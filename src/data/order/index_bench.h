#pragma once

#include <cstdint>
#include <filesystem>

namespace megalith::data {

struct IndexBenchOptions {
  int64_t datasets = 2400;
  int64_t tokens = 2'000'000'000'000;  // in all datasets
  int64_t mean_document = 1000;        // tokens; lengths are uniform from 1 on
  int64_t sequence_length = 2048;
  int threads = 0;                  // 0: all cores
  std::filesystem::path directory;  // for the indices; emptied of them at the end
};

struct IndexBenchResult {
  int64_t documents = 0;
  int64_t samples = 0;  // in the indices
  int64_t bytes = 0;    // written
  double build_seconds = 0.0;
  double build_core_seconds = 0.0;
  int64_t blend_samples = 0;
  double blend_core_seconds = 0.0;  // on one thread
  double reopen_seconds = 0.0;      // all of it, up to the first sample
  double blend_samples_per_second() const { return static_cast<double>(blend_samples) / blend_core_seconds; }
};

// Builds the sample indices of many large datasets whose lengths are made up, blends them by size over 0.95 epochs,
// keeps all of it in a directory and opens it again. No tokens are needed for that.
IndexBenchResult bench_index(const IndexBenchOptions& options);

}  // namespace megalith::data
