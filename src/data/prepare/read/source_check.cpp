#include "data/prepare/read/source_check.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/hash/digest.h"
#include "data/prepare/encode_pipeline.h"
#include "data/prepare/prepare_config.h"
#include "data/prepare/prepare_job.h"

namespace megalith::data {

namespace {
constexpr int64_t kOneOf = 1000;
constexpr int64_t kFewDocuments = 100;

// Encodes the texts that belong to the sample, which their hash decides; for another text stands one id that no text
// has.
class SamplingTokenizer : public Tokenizer {
 public:
  SamplingTokenizer(const Tokenizer& tokenizer, uint64_t one_of) : tokenizer_(tokenizer), one_of_(one_of) {}

  std::string_view name() const override { return tokenizer_.name(); }
  int64_t vocab_size() const override { return tokenizer_.vocab_size() + 1; }
  int32_t eod() const override { return tokenizer_.eod(); }
  int32_t left_out() const { return static_cast<int32_t>(tokenizer_.vocab_size()); }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    if (in_sample(text)) return tokenizer_.encode(text, ids);
    ids.push_back(left_out());
  }
  int64_t encode_with_specials(std::string_view text, std::vector<int32_t>& ids, SpecialText policy) const override {
    // Which texts are rejected has to be found out for all of them.
    if (policy == SpecialText::reject || in_sample(text)) return tokenizer_.encode_with_specials(text, ids, policy);
    ids.push_back(left_out());
    return 0;
  }
  std::string decode(std::span<const int32_t> ids) const override { return tokenizer_.decode(ids); }

 private:
  bool in_sample(std::string_view text) const { return text.empty() || hash64(text) % one_of_ == 0; }

  const Tokenizer& tokenizer_;
  uint64_t one_of_;
};

// Takes the place of the writer: compares what comes out of the pipeline with what is there.
class Comparison : public PipelineEnds {
 public:
  Comparison(const IndexedDataset& dataset, const std::vector<InputFile>& inputs, const PrepareOptions& options,
             int32_t left_out)
      : dataset_(dataset), units_(units_of(inputs, options)), options_(options), left_out_(left_out) {}

  std::optional<PipelineUnit> next_unit() override { return units_.next(); }

  void put(const PipelineUnit& unit, PipelineBatch batch) override {
    if (!batch.damage.empty()) {
      if (options_.encode.on_error == OnError::fail) data_error("{}", batch.damage);
      now_ = unit_begin_;  // such a unit was left out whole
    } else {
      compare(unit, batch.encoded.keys.front());
    }
    if (batch.last) unit_begin_ = now_;
  }

  SourceComparison finish() {
    if (now_.found.problem.empty() && now_.document != dataset_.documents()) {
      now_.found.problem =
          fmt::format("its sources hold {} documents, it holds {}", now_.document, dataset_.documents());
    }
    return std::move(now_.found);
  }

 private:
  struct State {
    int64_t document = 0;
    SourceComparison found;
  };

  void compare(const PipelineUnit& unit, const EncodedBatch::Key& key) {
    const std::vector<int32_t> ids = ids_of(key);
    std::span<const int32_t> rest = ids;
    for (const int32_t length : key.lengths) {
      const auto document = rest.first(static_cast<size_t>(length));
      rest = rest.subspan(static_cast<size_t>(length));
      compare(unit, document);
      ++now_.document;
    }
  }

  void compare(const PipelineUnit& unit, std::span<const int32_t> expected) {
    if (!now_.found.problem.empty() || now_.document >= dataset_.documents()) return;
    if (std::find(expected.begin(), expected.end(), left_out_) != expected.end()) return;
    ++now_.found.documents;
    const std::vector<int32_t> stored = stored_ids(now_.document);
    if (std::ranges::equal(stored, expected)) return;
    const auto differ = std::ranges::mismatch(stored, expected);
    now_.found.problem = fmt::format(
        "document {} is not what encoding it again from {} gives: they have {} and {} tokens and differ at token {}",
        now_.document, unit.file.path.string(), stored.size(), expected.size(), differ.in1 - stored.begin());
  }

  std::vector<int32_t> stored_ids(int64_t document) const {
    std::vector<int32_t> ids;
    for (int64_t i = dataset_.document_begin(document); i < dataset_.document_begin(document + 1); ++i) {
      const size_t begin = ids.size();
      ids.resize(begin + static_cast<size_t>(dataset_.length(i)));
      dataset_.read(i, 0, std::span(ids).subspan(begin));
    }
    return ids;
  }

  const IndexedDataset& dataset_;
  InputUnits units_;
  const PrepareOptions& options_;
  int32_t left_out_;
  State now_;
  State unit_begin_;
};

// How the dataset was made.
struct Recipe {
  PrepareOptions options;
  std::vector<InputFile> inputs;
};

Recipe read_recipe(const IndexedDataset& dataset, const nlohmann::ordered_json& sidecar, const Tokenizer& tokenizer) {
  try {
    const auto& config = sidecar.at("config");
    Recipe recipe{options_from_json(config), {}};
    recipe.options.encode.json_keys = {sidecar.at("key").get<std::string>()};
    recipe.options.read.zstd_window_log = 31;  // what could be read once can be read again
    for (const auto& file : sidecar.at("inputs")) recipe.inputs.push_back(input_from_json(file));
    if (config.at("tokenizer") != tokenizer_to_json(tokenizer)) {
      user_error("{} was made with another tokenizer: {}, not {}", dataset.name(), config.at("tokenizer").dump(),
                 tokenizer_to_json(tokenizer).dump());
    }
    return recipe;
  } catch (const nlohmann::ordered_json::exception&) {
    data_error("{}: its sidecar .json does not say from which text it was made", dataset.name());
  }
}
}  // namespace

SourceComparison compare_with_source(const IndexedDataset& dataset, const nlohmann::ordered_json& sidecar,
                                     const Tokenizer& tokenizer, int threads) {
  const Recipe recipe = read_recipe(dataset, sidecar, tokenizer);
  const int64_t one_of = std::clamp<int64_t>(dataset.documents() / kFewDocuments, 1, kOneOf);
  const SamplingTokenizer sampling(tokenizer, static_cast<uint64_t>(one_of));
  Comparison comparison(dataset, recipe.inputs, recipe.options, sampling.left_out());
  PipelineOptions pipeline;
  pipeline.encode = recipe.options.encode;
  pipeline.batch = {recipe.options.read, recipe.options.batch_bytes, pipeline.encode.max_document_bytes};
  pipeline.threads = threads;
  run_pipeline(sampling, pipeline, comparison);
  return comparison.finish();
}

}  // namespace megalith::data
