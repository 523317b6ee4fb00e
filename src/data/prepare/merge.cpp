#include "data/prepare/merge.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/hash/digest.h"
#include "core/process/file_lock.h"
#include "data/files/indexed_dataset.h"
#include "data/prepare/prepare_config.h"
#include "data/prepare/read/input_list.h"
#include "data/prepare/write/index_stream.h"
#include "data/tokenizer/data_tokenizer.h"

namespace megalith::data {

namespace {
using Json = nlohmann::ordered_json;

// All that is known before anything is copied.
struct Sources {
  TokenType type = TokenType::uint16;
  MergeCounts counts;
  int64_t bytes = 0;
  Json inputs = Json::array();
  Json tokenizer;  // of all inputs; null: unknown, or not one
  bool append_eod = true;
};

struct MadeWith {
  std::string prefix;
  RecordedTokenizer tokenizer;
};

// Which tokenizer the output is of, as far as sidecars say.
void settle_tokenizer(const std::vector<std::string>& inputs, bool force, Sources& sources) {
  std::optional<MadeWith> first;
  bool one = true;
  for (const std::string& prefix : inputs) {
    const std::optional<RecordedTokenizer> tokenizer = tokenizer_of_data(prefix);
    sources.append_eod = sources.append_eod && tokenizer && tokenizer->eod >= 0;
    one = one && tokenizer;
    if (!tokenizer) continue;
    if (!first) first = MadeWith{prefix, *tokenizer};
    if (same_tokenizer(first->tokenizer, *tokenizer)) continue;
    one = false;
    if (force) continue;
    user_error(
        "{} was made with {} and {} with {}: the same ids mean different texts. Merge datasets of one tokenizer, or "
        "use "
        "--force",
        first->prefix, describe(first->tokenizer), prefix, describe(*tokenizer));
  }
  if (one) sources.tokenizer = tokenizer_to_json(first->tokenizer);
}

Sources read_sources(const std::vector<std::string>& inputs, bool force) {
  if (inputs.empty()) user_error("no dataset to merge given");
  Sources sources;
  for (const std::string& prefix : inputs) {
    const IndexedDataset dataset(prefix);
    if (&prefix == &inputs.front()) sources.type = dataset.token_type();
    if (dataset.token_type() != sources.type) {
      user_error("{} holds {} tokens and {} holds {}: they cannot be merged", inputs.front(), name_of(sources.type),
                 prefix, name_of(dataset.token_type()));
    }
    sources.counts.documents += dataset.documents();
    sources.counts.sequences += dataset.sequences();
    sources.counts.tokens += dataset.tokens();
    for (const InputFile& file : list_inputs({prefix + ".bin", prefix + ".idx"}, /*sort_all=*/false)) {
      sources.inputs.push_back(input_to_json(file));
    }
  }
  settle_tokenizer(inputs, force, sources);
  sources.bytes = sources.counts.tokens * size_of(sources.type);
  return sources;
}

WrittenFile copy_tokens(const std::vector<std::string>& inputs, const Sources& sources, File& out,
                        const std::function<void(int64_t, int64_t)>& progress) {
  std::vector<std::byte> block(size_t{4} << 20);
  WrittenFile written;
  Digest digest;
  for (const std::string& prefix : inputs) {
    // What the index does not name stays behind; IndexedDataset has checked that nothing lies in between.
    const int64_t size = IndexedDataset(prefix).tokens() * size_of(sources.type);
    const File in = File::open_for_reading(prefix + ".bin");
    for (int64_t at = 0; at < size;) {
      const auto part = std::span(block).first(static_cast<size_t>(std::min<int64_t>(size - at, std::ssize(block))));
      in.read_at(at, part);
      out.write(part);
      digest.add(part);
      at += std::ssize(part);
      written.bytes += std::ssize(part);
      if (progress) progress(written.bytes, sources.bytes);
    }
  }
  out.sync();
  written.digest = digest.hex();
  return written;
}

WrittenFile write_merged_index(const std::vector<std::string>& inputs, const Sources& sources,
                               const std::string& path) {
  IndexStream index(path, sources.type, sources.counts.sequences, sources.counts.documents);
  for (const std::string& prefix : inputs) {
    const IndexedDataset dataset(prefix);
    for (int64_t i = 0; i < dataset.sequences(); ++i) index.put(dataset.length(i));
  }
  int64_t pointer = 0;
  for (const std::string& prefix : inputs) {
    const IndexedDataset dataset(prefix);
    for (int64_t i = 0; i < dataset.sequences(); ++i) {
      index.put(pointer);
      pointer += dataset.length(i) * size_of(sources.type);
    }
  }
  int64_t first = 0;
  index.put(first);
  for (const std::string& prefix : inputs) {
    const IndexedDataset dataset(prefix);
    for (int64_t i = 1; i <= dataset.documents(); ++i) index.put(first + dataset.document_begin(i));
    first += dataset.sequences();
  }
  return index.finish();
}

// The sidecar at `path` is of this merge, and the output has the sizes that it says.
bool describes(const std::string& path, const std::string& output, const Sources& sources) {
  if (size_if_there(path) < 0) return false;
  const Json json = Json::parse(read_text(path), nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.value("merged", Json()) == sources.inputs && json.contains("bin") &&
         json.contains("idx") && json["bin"].value("bytes", int64_t{-1}) == size_if_there(output + ".bin") &&
         json["idx"].value("bytes", int64_t{-1}) == size_if_there(output + ".idx");
}
}  // namespace

MergeCounts merge_datasets(const std::vector<std::string>& inputs, const std::string& output,
                           const MergeOptions& options) {
  Sources sources = read_sources(inputs, options.force);
  if (describes(output + ".json", output, sources)) {
    sources.counts.was_there = true;
    return sources.counts;
  }
  const bool exists = size_if_there(output + ".bin") >= 0 && size_if_there(output + ".idx") >= 0;
  // A kill right before the last rename leaves output that is ours.
  const bool ours = describes(output + ".json.part", output, sources);
  if (exists && !ours && !options.overwrite)
    user_error("{}.bin exists and is not this merge; use --overwrite to replace it", output);
  for (const std::string& prefix : inputs) {
    std::error_code status;
    if (std::filesystem::equivalent(prefix + ".bin", output + ".bin", status)) {
      user_error("{} would be merged into itself", prefix);
    }
  }
  make_parent_directory(output);
  File tokens = File::open_for_appending(output + ".bin.part");
  lock_or_refuse(tokens);
  tokens.truncate(0);
  try {
    const WrittenFile bin = copy_tokens(inputs, sources, tokens, options.progress);
    const WrittenFile idx = write_merged_index(inputs, sources, output + ".idx.part");
    Json sidecar{{"format", "megalith.dataset/1"},
                 {"dtype", name_of(sources.type)},
                 {"documents", sources.counts.documents},
                 {"sequences", sources.counts.sequences},
                 {"tokens", sources.counts.tokens},
                 {"bin", {{"bytes", bin.bytes}, {"xxh3", bin.digest}}},
                 {"idx", {{"bytes", idx.bytes}, {"xxh3", idx.digest}}},
                 {"merged", sources.inputs}};
    if (!sources.tokenizer.is_null()) {
      sidecar["tokenizer"] = sources.tokenizer;
      sidecar["append_eod"] = sources.append_eod;
    }
    {
      File file = open_part_file(output + ".json.part");
      file.write(sidecar.dump(1) + "\n");
      file.sync();
    }
    remove_if_there(output + ".json");
    remove_if_there(output + ".idx");
    rename_over(output + ".bin.part", output + ".bin");
    publish(output + ".idx.part", output + ".idx");
    publish(output + ".json.part", output + ".json");
  } catch (...) {
    ::unlink((output + ".bin.part").c_str());
    ::unlink((output + ".idx.part").c_str());
    throw;
  }
  return sources.counts;
}

}  // namespace megalith::data
