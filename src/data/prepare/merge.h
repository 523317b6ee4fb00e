#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace megalith::data {

struct MergeCounts {
  int64_t documents = 0;
  int64_t sequences = 0;
  int64_t tokens = 0;
  bool was_there = false;  // the same merge was complete already
};

struct MergeOptions {
  bool overwrite = false;  // replace output of other inputs
  bool force = false;      // merge what different tokenizers made
  std::function<void(int64_t bytes, int64_t total)> progress;
};

// Joins `<input>.bin/.idx` pairs, in their order, into one pair. All must store tokens in the same type (user error
// that names both) and, as far as their sidecars say, come from the same tokenizer. Tokens are copied in blocks and
// indices streamed, in 64 bits throughout. The output gets its names when it is whole, with a sidecar `<output>.json`
// last; output of other inputs is refused unless `overwrite`.
MergeCounts merge_datasets(const std::vector<std::string>& inputs, const std::string& output,
                           const MergeOptions& options = {});

}  // namespace megalith::data
