#include "data/prepare/prepare_job.h"

#include <algorithm>

#include "core/error.h"
#include "core/file.h"
#include "core/hash/digest.h"
#include "core/process/file_lock.h"
#include "data/prepare/parquet_file.h"
#include "data/prepare/prepare_config.h"

namespace megalith::data {

namespace {
using Json = nlohmann::ordered_json;

int64_t shard_count(const PrepareOptions& options, int64_t files) {
  if (!options.numbered) return 1;
  if (options.shards < 0 || options.files_per_shard < 0) user_error("shards and files per shard are counts");
  if (options.shards > 0 && options.files_per_shard > 0) {
    user_error("give the number of shards or the files of a shard, not both");
  }
  if (options.shards > files) user_error("{} shards cannot be made of {} files", options.shards, files);
  if (options.shards > 0) return options.shards;
  return options.files_per_shard > 0 ? (files + options.files_per_shard - 1) / options.files_per_shard : 1;
}

std::vector<InputFile> slice(const std::vector<InputFile>& files, int64_t begin, int64_t end) {
  return {files.begin() + begin, files.begin() + end};
}
}  // namespace

InputUnits units_of(std::vector<InputFile> files, const PrepareOptions& options) {
  return {std::move(files), options.format, options.text_documents,
          FieldRules(options.encode.json_keys, options.encode.keep)};
}

PipelineOptions pipeline_options(const PrepareOptions& options) {
  return {.encode = options.encode,
          .batch = {options.read, options.batch_bytes, options.encode.max_document_bytes, options.long_document_bytes},
          .threads = options.threads};
}

void check_inputs(const std::vector<InputFile>& files, const PrepareOptions& options) {
  for (const InputFile& file : files) {
    const Cut cut = cut_of(file.path, options.format, options.text_documents);
    if (is_parquet(file.path, options.format)) require_parquet_reader(file.path);
    if (cut == Cut::lines) {
      require_json_reader();
      continue;
    }
    if (options.encode.json_keys.size() != 1) {
      user_error("input {} is plain text, which cannot have {} JSON keys", file.path.string(),
                 options.encode.json_keys.size());
    }
    if (!options.encode.keep.empty()) user_error("input {} is plain text, which has no fields", file.path.string());
  }
}

PrepareJob make_job(const Tokenizer& tokenizer, const PrepareOptions& options) {
  const auto files = list_inputs(options.inputs, options.numbered);
  check_inputs(files, options);
  const Json config = config_to_json(tokenizer, options);
  const int64_t count = shard_count(options, std::ssize(files));
  const int width = std::max(2, static_cast<int>(std::to_string(count - 1).size()));
  PrepareJob job;
  Json shards = Json::array();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t each = options.files_per_shard;
    const int64_t begin = each > 0 ? i * each : i * std::ssize(files) / count;
    const int64_t end = each > 0 ? std::min(begin + each, std::ssize(files)) : (i + 1) * std::ssize(files) / count;
    ShardJob& shard = job.shards.emplace_back();
    shard.prefix = options.numbered ? fmt::format("{}_{:0{}}", options.output_prefix, i, width) : options.output_prefix;
    shard.inputs = options.numbered ? slice(files, begin, end) : files;
    Json inputs = Json::array();
    for (const InputFile& file : shard.inputs) inputs.push_back(input_to_json(file));
    shard.config_hash = digest_of(Json{{"config", config}, {"inputs", inputs}}.dump());
    shards.push_back({{"prefix", shard.prefix}, {"config_hash", shard.config_hash}, {"inputs", inputs}});
  }
  job.manifest = Json{{"format", "megalith.manifest/1"},
                      {"config_hash", digest_of(config.dump())},
                      {"config", config},
                      {"shards", shards}}
                     .dump(1) +
                 "\n";
  job.manifest_hash = digest_of(job.manifest);
  return job;
}

namespace {
// What a person should look at when two manifests differ.
std::string difference(const std::string& before, const std::string& now) {
  const Json old = Json::parse(before, nullptr, /*allow_exceptions=*/false);
  const Json fresh = Json::parse(now);
  if (!old.is_object() || !old.contains("config") || !old.contains("shards")) return "it cannot be read";
  for (const auto& [key, value] : fresh.at("config").items()) {
    if (old.at("config").value(key, Json()) != value) {
      return fmt::format("{} was {}, is now {}", key, old.at("config").value(key, Json()).dump(), value.dump());
    }
  }
  const auto count = [](const Json& manifest) {
    size_t files = 0;
    for (const Json& shard : manifest.at("shards")) files += shard.at("inputs").size();
    return fmt::format("{} files in {} shards", files, manifest.at("shards").size());
  };
  if (count(old) != count(fresh)) return fmt::format("it was {}, is now {}", count(old), count(fresh));
  for (size_t i = 0; i < fresh.at("shards").size(); ++i) {
    const Json& was = old.at("shards")[i].at("inputs");
    const Json& is = fresh.at("shards")[i].at("inputs");
    for (size_t k = 0; k < std::min(was.size(), is.size()); ++k) {
      if (was[k] != is[k]) return fmt::format("input {} was {}", is[k].dump(), was[k].dump());
    }
  }
  return "the shards are cut differently";
}
}  // namespace

void settle_manifest(const std::string& path, const PrepareJob& job, bool overwrite) {
  if (size_if_there(path) >= 0) {
    const std::string before = read_text(path);
    if (before == job.manifest) {
      remove_stale_part(path);
      return;
    }
    if (!overwrite) {
      user_error("{} is of another configuration ({}); use another --output-prefix, or --overwrite", path,
                 difference(before, job.manifest));
    }
  }
  replace_file_among_many(path, job.manifest);
}

}  // namespace megalith::data
