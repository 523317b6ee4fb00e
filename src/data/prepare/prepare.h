#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/prepare/batch_encoder.h"
#include "data/prepare/read/input_list.h"
#include "data/prepare/write/output_counts.h"
#include "data/tokenizer/tokenizer.h"

namespace megalith::data {

// This process does shard s when s % count == index.
struct WorkerShare {
  int64_t index = 0;
  int64_t count = 1;
};

struct PrepareProgress {
  int64_t bytes = 0;          // of this worker's input files, done
  int64_t bytes_total = 0;    // in all
  int64_t bytes_resumed = 0;  // of those done, what an earlier run did
  int64_t text_bytes = 0;     // by this run
  int64_t documents = 0;      // by this run
  int64_t tokens = 0;         // by this run
  double seconds = 0.0;

  double bytes_per_second() const { return seconds > 0.0 ? static_cast<double>(bytes - bytes_resumed) / seconds : 0.0; }
  // Negative as long as nothing is known.
  double seconds_left() const {
    const double rate = bytes_per_second();
    return rate > 0.0 ? static_cast<double>(bytes_total - bytes) / rate : -1.0;
  }
};

struct PrepareOptions {
  std::vector<std::string> inputs;  // files and glob patterns
  std::string output_prefix;

  // Numbered: `<prefix>_<NN>_<key>_document`, inputs in natural order, a manifest `<prefix>.manifest.json` first. Not
  // numbered: one shard `<prefix>_<key>_document`, inputs as given, no manifest.
  bool numbered = true;
  int64_t shards = 0;           // 0: by files_per_shard
  int64_t files_per_shard = 0;  // 0: by shards; both 0: one shard

  InputFormat format = InputFormat::by_name;
  TextDocuments text_documents = TextDocuments::whole_file;
  EncodeOptions encode;
  ReadOptions read;
  int64_t batch_bytes = int64_t{1} << 20;
  // Longer documents are encoded while they are read, so that memory does not grow with them. The output is the same.
  int64_t long_document_bytes = int64_t{4} << 20;

  int threads = 1;
  WorkerShare worker;
  // Finished output that another configuration made is refused unless this is set; what this configuration has finished
  // is kept in any case.
  bool overwrite = false;

  std::function<void(const PrepareProgress&)> progress;  // called often; from one thread at a time
  std::function<void(const std::string&)> warn;
};

struct PrepareSummary {
  struct Key {
    std::string key;
    OutputCounts counts;  // of all shards of this worker, finished before or now
  };
  std::vector<Key> keys;
  std::vector<std::string> prefixes;  // of this worker's outputs
  int64_t shards = 0;                 // of this worker
  int64_t shards_before = 0;          // of those, what was complete already
  int64_t shards_in_all = 0;          // of all workers
  PrepareProgress progress;
};

// Text to sharded `.bin` and `.idx`, in one pass. Input files are cut into shards in their order, by number of files;
// the outputs depend on inputs and options alone, not on threads, workers or interruptions. After a kill the same call
// goes on with the files that were not finished (see ShardWriter). Each output has a sidecar `<name>.json`, written
// last.
PrepareSummary prepare(const Tokenizer& tokenizer, const PrepareOptions& options);

// `<output_prefix>_<key>_document`.
std::string output_name(const std::string& output_prefix, const std::string& key);

}  // namespace megalith::data
