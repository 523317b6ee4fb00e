#pragma once

#include <string>
#include <vector>

#include "data/prepare/encode_pipeline.h"
#include "data/prepare/prepare.h"

namespace megalith::data {

struct ShardJob {
  std::string prefix;  // of its outputs, without the key
  std::vector<InputFile> inputs;
  std::string config_hash;  // of everything that its bytes depend on
};

// Which files go where. The same for every worker.
struct PrepareJob {
  std::vector<ShardJob> shards;
  std::string manifest;  // JSON text
  std::string manifest_hash;
};

PrepareJob make_job(const Tokenizer& tokenizer, const PrepareOptions& options);

// User error for inputs that do not fit the options, such as text where several JSON keys are asked for.
void check_inputs(const std::vector<InputFile>& files, const PrepareOptions& options);

InputUnits units_of(std::vector<InputFile> files, const PrepareOptions& options);

PipelineOptions pipeline_options(const PrepareOptions& options);

// Writes the manifest, or checks that the one that is there says the same. User error if not, unless `overwrite`.
void settle_manifest(const std::string& path, const PrepareJob& job, bool overwrite);

}  // namespace megalith::data
