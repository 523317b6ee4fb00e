#include <fmt/ranges.h>

#include <algorithm>

#include "checkpoint/file_names.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/hugging_face/hugging_face_files.h"
#include "checkpoint/hugging_face/hugging_face_model.h"
#include "checkpoint/hugging_face/hugging_face_tokenizer.h"
#include "checkpoint/kept_tokenizer.h"
#include "checkpoint/new_directory.h"
#include "checkpoint/store.h"
#include "config/derived.h"
#include "config/load.h"
#include "config/print.h"
#include "config/validate.h"
#include "core/error.h"
#include "data/tokenizer/tokenizer.h"
#include "model/parameters.h"

namespace megalith::checkpoint {

namespace fs = std::filesystem;

namespace {

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
        as_written_(config_as_written(options)),
        run_(effective()),
        dtype_(config::compute_dtype(run_.trainer)),
        table_(model::logical_parameters(model::make_model_config(run_, config_.vocabulary))),
        foreign_({.directory = source,
                  .weights = weights_,
                  .family = config_.family,
                  .parameters = foreign_parameters(config_.family, table_, config_.vocabulary),
                  .tied = run_.model.share_embeddings_and_output_weights}) {}

  // `output`: where the directory will be.
  Converted save(const fs::path& directory, const fs::path& output) {
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
    result.notes = keep_tokenizer(run_.model.tokenizer, directory);
    if (std::string digests = kept_digests(run_.model.tokenizer, directory); !digests.empty())
      snapshot.state.extra[kTokenizerDigests] = std::move(digests);
    const SaveResult saved = Store(directory).save(snapshot);
    result.bytes = saved.bytes;
    result.files = static_cast<int64_t>(weights_.files());
    result.notes.insert(result.notes.end(), saved.warnings.begin(), saved.warnings.end());
    tell(result.notes);
    write_recipe(directory, output, result.parameters);
    result.written = {saved.path.filename().string(), kRecipeFile};
    if (fs::exists(directory / "tokenizer")) result.written.emplace_back("tokenizer");
    return result;
  }

 private:
  // What comes with the weights, and what the user changed.
  config::Run config_as_written(const ImportOptions& options) const {
    config::Run run;
    run.model = config_.model;
    run.model.tokenizer = find_hugging_face_tokenizer(source_, config_.vocabulary);
    const bool is_bf16 = options.dtype.value_or(exact_dtype(weights_)) == DType::bf16;
    run.trainer.precision = is_bf16 ? config::Precision::bf16 : config::Precision::fp32;
    const std::vector<config::Source> sources{{.name = source_.string(), .text = config::to_yaml(run)}};
    return config::load(sources, options.overrides);
  }

  config::Run effective() const {
    config::Run effective = as_written_;
    config::validate(effective);
    if (family_of(effective.model) != config_.family) {
      user_error("{} holds a {}: the overrides cannot make it another model", source_.string(),
                 names_of(config_.family).model_type);
    }
    check_tokenizer(effective.model.tokenizer, config_.vocabulary);
    return effective;
  }

  // A recipe that trains on from these weights: it lacks nothing but data.
  void write_recipe(const fs::path& directory, const fs::path& output, int64_t parameters) const {
    const fs::path there = fs::absolute(output).lexically_normal();
    config::Run recipe = as_written_;
    recipe.name = there.filename().empty() ? there.parent_path().filename() : there.filename();
    recipe.model.restore_from_path = there;
    config::Tokenizer& tokenizer = recipe.model.tokenizer;
    tokenizer = kept_tokenizer(tokenizer, directory);
    for (std::string* file : {&tokenizer.vocab_file, &tokenizer.merge_file, &tokenizer.model}) {
      if (file->starts_with(directory.string())) *file = there / fs::path(*file).lexically_relative(directory);
    }
    File file = File::create_new(directory / kRecipeFile);
    file.write(fmt::format(
        "# Trains on from the weights of {}: a {} of {} parameters. Data must be made with this tokenizer, and the\n"
        "# learning rate and its schedule are yours to choose:\n"
        "#   megalith train -c {} model.data.data_prefix=[DATA_PREFIX] trainer.max_steps=1000 model.optim.lr=1e-5\n"
        "{}",
        source_.string(), names_of(config_.family).model_type, parameters, (there / kRecipeFile).string(),
        config::changes_to_yaml(recipe)));
    file.sync();
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
  config::Run as_written_;
  config::Run run_;
  DType dtype_;
  parallel::ParameterTable table_;
  ForeignModel foreign_;
};

}  // namespace

Converted import_hugging_face(const fs::path& source, const fs::path& output, const ImportOptions& options) {
  if (!fs::is_directory(source)) user_error("there is no directory {}", source.string());
  if (!fs::exists(source / kHuggingFaceConfig)) {
    const bool ours =
        fs::exists(source / "checkpoints") || fs::exists(source / kManifestName) || !Store(source).list().empty();
    user_error("{} is no Hugging Face directory: it has no {}{}", source.string(), kHuggingFaceConfig,
               ours ? "; it holds checkpoints of Megalith, which --to hugging-face converts" : "");
  }
  Importer importer(source, options);
  NewDirectory directory(output);
  Converted result = importer.save(directory.unfinished(), output);
  directory.commit();
  return result;
}

}  // namespace megalith::checkpoint
