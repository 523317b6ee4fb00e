#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/clock.h"
#include "core/rng.h"
#include "data/tokenizer.h"
#include "data/utf8_stream.h"
#include "model/generator.h"
#include "model/parameters.h"
#include "ops/elementwise.h"
#include "train/describe.h"
#include "train/engine.h"
#include "train/inference.h"
#include "train/restore.h"

namespace megalith::train {

int32_t sample_token(std::vector<float> logits, const GenerateOptions& options, double draw) {
  if (options.temperature <= 0.0) {
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (options.top_k > 0 && options.top_k < static_cast<int64_t>(order.size()))
    order.resize(static_cast<size_t>(options.top_k));

  const double highest = logits[static_cast<size_t>(order.front())];
  std::vector<double> weights;
  weights.reserve(order.size());
  for (const int32_t id : order)
    weights.push_back(std::exp((logits[static_cast<size_t>(id)] - highest) / options.temperature));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);

  // The smallest set of likeliest tokens whose probability reaches top_p.
  double kept = 0.0;
  size_t count = 0;
  while (count < weights.size() && (count == 0 || kept < options.top_p * total)) kept += weights[count++];

  double remaining = draw * kept;
  for (size_t i = 0; i < count; ++i) {
    remaining -= weights[i];
    if (remaining < 0.0) return order[i];
  }
  return order[count - 1];
}

namespace {

// Feeds tokens to the model, and starts over from the second half of the text when the context is full.
class Reader {
 public:
  Reader(checkpoint::Loaded& checkpoint, const config::Run& run, int64_t vocabulary)
      : request_(stage_request(run, vocabulary)),
        config_(request_.config),
        context_length_(request_.length),
        pool_(request_.threads),
        stream_(pool_, request_.device),
        weights_("weights", request_.device, model::memory_of_stage(request_, 0).bytes_of("weights")),
        cache_("cache", request_.device, cache_bytes()),
        scratch_("scratch", request_.device, scratch_bytes()),
        table_(model::logical_parameters(config_)),
        placement_(table_),
        store_({.placement = placement_, .compute = config_.compute}, weights_, nullptr),
        generator_(config_, store_, stream_, cache_, context_length_) {
    for (const parallel::Parameter& parameter : store_.all()) {
      load_to_device(stream_, checkpoint, checkpoint::TensorKind::weights, parameter.spec->name, parameter.weight);
    }
    ids_ = cache_.allocate("ids", DType::i32, {context_length_});
    logits_ = scratch_.allocate("logits", config_.compute, {1, config_.padded_vocabulary});
    logits32_ = scratch_.allocate("logits32", DType::f32, {1, config_.padded_vocabulary});
  }

  int64_t context_length() const { return context_length_; }

  // Logits after the tokens so far and these.
  std::vector<float> read(const std::vector<int32_t>& tokens) {
    text_.insert(text_.end(), tokens.begin(), tokens.end());
    if (static_cast<int64_t>(text_.size()) > context_length_) {
      text_.erase(text_.begin(), text_.end() - std::max<int64_t>(1, context_length_ / 2));
      position_ = 0;
    }
    std::vector<int32_t> unread(text_.begin() + position_, text_.end());
    const auto count = static_cast<int64_t>(unread.size());
    const Tensor ids(ids_.data, DType::i32, {count}, request_.device);
    copy(stream_, Tensor(unread.data(), DType::i32, {count}), ids);
    generator_.feed({.stream = stream_, .scratch = scratch_, .batch = 1, .length = count, .position_offset = position_},
                    ids, logits_);
    position_ += count;
    ops::cast(stream_, {.x = logits_, .y = logits32_});
    std::vector<float> logits(static_cast<size_t>(config_.padded_vocabulary));
    copy(stream_, logits32_, Tensor(logits.data(), DType::f32, logits32_.shape));
    stream_.wait();
    logits.resize(static_cast<size_t>(config_.vocabulary));
    return logits;
  }

 private:
  // One layer's activations at a time, of one sequence as long as the context, and the logits of one token.
  int64_t scratch_bytes() const {
    model::StageRequest request = request_;
    request.batch = 1;
    request.training = false;
    request.config.layers = 1;
    request.config.recompute = model::Recompute::none;
    const cost::MemoryTable table = model::memory_of_stage(request, 0);
    return table.bytes_of("activations") + table.bytes_of("scratch") +
           2 * Arena::footprint(DType::f64, config_.padded_vocabulary);
  }

  int64_t cache_bytes() const {
    const int64_t rope = config_.learned_positions ? 0 : config_.max_positions * (config_.head_dim / 2);
    return 2 * config_.layers * Arena::footprint(config_.compute, context_length_ * config_.kv_width()) +
           2 * Arena::footprint(DType::f32, rope) + Arena::footprint(DType::i32, context_length_);
  }

  model::StageRequest request_;
  model::ModelConfig config_;
  int64_t context_length_;
  ThreadPool pool_;
  Stream stream_;
  Arena weights_, cache_, scratch_;
  parallel::ParameterTable table_;
  parallel::Placement placement_;
  parallel::ParameterStore store_;
  model::Generator generator_;
  Tensor ids_, logits_, logits32_;
  std::vector<int32_t> text_;
  int64_t position_ = 0;
};

std::vector<int32_t> encode_prompt(const data::Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<int32_t> tokens = tokenizer.encode(prompt);
  // An empty prompt starts a document, as the training text does after an end.
  if (tokens.empty()) tokens.push_back(tokenizer.eod());
  return tokens;
}

}  // namespace

PromptLogits prompt_logits(checkpoint::Loaded& checkpoint, const config::Run& run, const std::string& prompt) {
  const std::unique_ptr<data::Tokenizer> tokenizer = data::make_tokenizer(run.model.tokenizer);
  PromptLogits result{.tokens = encode_prompt(*tokenizer, prompt),
                      .logits = {},
                      .vocabulary = data::vocabulary_of(run.model.tokenizer).size};
  Reader reader(checkpoint, run, result.vocabulary);
  if (static_cast<int64_t>(result.tokens.size()) > reader.context_length()) {
    user_error("the prompt has {} tokens, the model reads {} at once", result.tokens.size(), reader.context_length());
  }
  for (const int32_t token : result.tokens) {
    const std::vector<float> logits = reader.read({token});
    result.logits.insert(result.logits.end(), logits.begin(), logits.end());
  }
  return result;
}

Generation generate(checkpoint::Loaded& checkpoint, const config::Run& run, const GenerateOptions& options,
                    const std::function<void(std::string_view)>& emit) {
  const std::unique_ptr<data::Tokenizer> tokenizer = data::make_tokenizer(run.model.tokenizer);
  std::vector<int32_t> tokens = encode_prompt(*tokenizer, options.prompt);
  // A model may know more ids than its tokenizer has texts for.
  Reader reader(checkpoint, run, data::vocabulary_of(run.model.tokenizer).size);
  Generation result{.prompt_tokens = static_cast<int64_t>(tokens.size())};
  const double begin = monotonic_seconds();
  const uint64_t key = named_key(options.seed, "generate");
  data::Utf8Stream text;
  while (result.tokens < options.max_tokens) {
    const std::array<uint32_t, 4> words = philox(key, {static_cast<uint32_t>(result.tokens), 0, 0, 0});
    std::vector<float> logits = reader.read(tokens);
    logits.resize(static_cast<size_t>(tokenizer->vocab_size()));
    const int32_t next = sample_token(std::move(logits), options, uniform_from_bits(words[0]));
    ++result.tokens;
    if (next == tokenizer->eod()) {
      result.ended = true;
      break;
    }
    tokens = {next};
    emit(text.add(tokenizer->decode(tokens)));
  }
  emit(text.finish());
  result.seconds = monotonic_seconds() - begin;
  return result;
}

}  // namespace megalith::train
