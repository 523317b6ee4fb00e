#include <fmt/ranges.h>

#include <algorithm>

#include "checkpoint/hugging_face.h"
#include "checkpoint/hugging_face_config.h"
#include "checkpoint/hugging_face_files.h"
#include "checkpoint/hugging_face_model.h"
#include "checkpoint/kept_tokenizer.h"
#include "checkpoint/new_directory.h"
#include "checkpoint/store.h"
#include "config/layout.h"
#include "config/load.h"
#include "config/print.h"
#include "config/validate.h"
#include "core/error.h"
#include "data/tokenizer.h"
#include "model/parameters.h"

namespace megalith::checkpoint {

namespace fs = std::filesystem;

namespace {

config::Tokenizer find_tokenizer(const fs::path& directory, int64_t vocabulary) {
  const fs::path here = fs::absolute(directory);
  config::Tokenizer tokenizer{.type = "NullTokenizer", .vocab_size = vocabulary};
  if (fs::exists(here / "tokenizer.json")) {
    tokenizer.type = "HuggingFaceTokenizer";
    tokenizer.model = here / "tokenizer.json";
  } else if (fs::exists(here / "vocab.json") && fs::exists(here / "merges.txt")) {
    tokenizer.type = "GPT2BPETokenizer";
    tokenizer.vocab_file = here / "vocab.json";
    tokenizer.merge_file = here / "merges.txt";
  }
  return tokenizer;
}

void check_tokenizer(const config::Tokenizer& tokenizer, int64_t vocabulary) {
  try {
    const int64_t size = data::vocabulary_of(tokenizer).size;
    if (size != vocabulary) user_error("the model has {} tokens, the config says {}", vocabulary, size);
  } catch (const Error& error) {
    user_error("{}; to convert the weights without their tokenizer, add model.tokenizer.type=NullTokenizer",
               error.what());
  }
}

// The narrowest type that holds every tensor exactly. bf16 has not the precision of halves.
DType exact_dtype(const ForeignWeights& weights) {
  const auto& all = weights.all();
  const bool only_bf16 =
      std::all_of(all.begin(), all.end(), [](const auto& place) { return place.second.entry->type == "BF16"; });
  return only_bf16 ? DType::bf16 : DType::f32;
}

class Importer {
 public:
  Importer(const fs::path& source, const ImportOptions& options)
      : source_(source),
        config_(read_hugging_face_config(read_foreign_text(source / kHuggingFaceConfig),
                                         (source / kHuggingFaceConfig).string())),
        weights_(ForeignWeights::open(source)),
        run_(make_run(options)),
        dtype_(config::compute_dtype(run_.trainer)),
        table_(model::logical_parameters(model::make_model_config(run_, config_.vocabulary))),
        foreign_({.directory = source,
                  .weights = weights_,
                  .family = config_.family,
                  .parameters = foreign_parameters(config_.family, table_, config_.vocabulary),
                  .tied = run_.model.share_embeddings_and_output_weights}) {}

  Converted save(const fs::path& directory) {
    Converted result{.family = config_.family, .dtype = dtype_};
    Snapshot snapshot{.state = {.run_id = "hugging-face",
                                .data = {.seed = run_.model.seed},
                                .config = config::to_yaml(run_),
                                .extra = {{"converted_from", fs::absolute(source_).filename().string()}}},
                      .tensors = {}};
    std::vector<std::vector<std::byte>> memory;
    for (const ForeignParameter& parameter : foreign_.parameters()) {
      const Shape& shape = parameter.spec->shape;
      memory.emplace_back(static_cast<size_t>(shape.elements() * size_of(dtype_)));
      const Tensor whole(memory.back().data(), dtype_, shape);
      foreign_.read(parameter, whole);
      snapshot.tensors.push_back({.name = parameter.spec->name, .kind = TensorKind::weights, .tensor = whole});
      result.parameters += shape.elements() - parameter.padding_rows * whole.cols();
    }
    const SaveResult saved = Store(directory).save(snapshot);
    result.bytes = saved.bytes;
    result.files = static_cast<int64_t>(weights_.files());
    result.notes = saved.warnings;
    for (std::string& note : keep_tokenizer(run_.model.tokenizer, directory)) result.notes.push_back(std::move(note));
    tell(result.notes);
    return result;
  }

 private:
  config::Run make_run(const ImportOptions& options) const {
    config::Run run;
    run.model = config_.model;
    run.model.tokenizer = find_tokenizer(source_, config_.vocabulary);
    run.trainer.precision = options.dtype.value_or(exact_dtype(weights_)) == DType::bf16 ? "bf16" : "32";
    const std::vector<config::Source> sources{{.name = source_.string(), .text = config::to_yaml(run)}};
    config::Run effective = config::load(sources, options.overrides);
    config::validate(effective);
    if (family_of(effective.model) != config_.family) {
      user_error("{} holds a {}: the overrides cannot make it another model", source_.string(),
                 names_of(config_.family).model_type);
    }
    check_tokenizer(effective.model.tokenizer, config_.vocabulary);
    return effective;
  }

  void tell(std::vector<std::string>& notes) const {
    if (!config_.unused.empty()) {
      notes.push_back(fmt::format("keys of config.json that were not used: {}", fmt::join(config_.unused, ", ")));
    }
    const config::Model& m = run_.model;
    if (m.tokenizer.type == "NullTokenizer") {
      notes.push_back("no tokenizer: to generate text, give model.tokenizer.type and its files");
    }
    if (m.encoder_seq_length < m.max_position_embeddings) {
      notes.push_back(fmt::format("samples of {} tokens of the {} that the model can read: model.encoder_seq_length",
                                  m.encoder_seq_length, m.max_position_embeddings));
    }
  }

  fs::path source_;
  ImportedConfig config_;
  ForeignWeights weights_;
  config::Run run_;
  DType dtype_;
  parallel::ParameterTable table_;
  ForeignModel foreign_;
};

}  // namespace

Converted import_hugging_face(const fs::path& source, const fs::path& output, const ImportOptions& options) {
  if (!fs::is_directory(source)) user_error("there is no directory {}", source.string());
  Importer importer(source, options);
  NewDirectory directory(output);
  Converted result = importer.save(directory.unfinished());
  directory.commit();
  return result;
}

}  // namespace megalith::checkpoint
