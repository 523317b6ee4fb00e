#pragma once

#include <string>

#include "data/prepare/prepare_job.h"
#include "data/prepare/write/shard_writer.h"

namespace megalith::data {

// The text of `<prefix>.json`, which says what an output is and where it came from. It holds no time and no path of the
// output, so that equal work gives equal bytes.
std::string describe_output(const Tokenizer& tokenizer, const PrepareOptions& options, const ShardJob& shard,
                            const std::string& manifest_hash, const std::string& key,
                            const ShardWriter::Written& written);

enum class OutputState {
  absent,
  complete,  // by this configuration, and the files have the sizes that the sidecar says
  foreign,   // by another configuration or program, or not whole
};

struct FoundOutput {
  OutputState state = OutputState::absent;
  OutputCounts counts;  // of a complete one
  std::string reason;   // of a foreign one
};

FoundOutput find_output(const std::string& prefix, const std::string& config_hash);

}  // namespace megalith::data
