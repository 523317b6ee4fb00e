#include "train/inference/generate.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/rng.h"
#include "data/tokenizer/utf8_stream.h"
#include "train/inference/stop_strings.h"

namespace megalith::train {

std::string_view name_of(TextEnd end) {
  switch (end) {
    case TextEnd::max_tokens:
      return "max_tokens";
    case TextEnd::end_of_document:
      return "end_of_document";
    case TextEnd::stop_string:
      return "stop";
  }
  return "";
}

namespace {

std::vector<int32_t> encode_prompt(const TextModel& model, const std::string& prompt) {
  std::vector<int32_t> tokens = model.tokenizer().encode(prompt);
  // An empty prompt starts a document, as the training text does after an end.
  if (tokens.empty()) tokens.push_back(model.tokenizer().eod());
  if (std::ssize(tokens) > model.context_length()) {
    user_error("the prompt has {} tokens, the model reads {} at once: shorten it (it begins with '{}')", tokens.size(),
               model.context_length(), data::replace_ill_formed_utf8(prompt.substr(0, 40)));
  }
  return tokens;
}

// A prompt on its way.
class Text {
 public:
  Text(size_t prompt, uint64_t number, int64_t sequence, std::vector<int32_t> tokens, const GenerateOptions& options)
      : prompt_(prompt),
        number_(number),
        sequence_(sequence),
        options_(&options),
        window_(std::move(tokens)),
        seen_(window_.begin(), window_.end()),
        stops_(options.stops) {
    result_.prompt_tokens = std::ssize(window_);
  }

  size_t prompt() const { return prompt_; }
  int64_t sequence() const { return sequence_; }
  const Generation& result() const { return result_; }
  bool ended() const { return ended_; }

  // Tokens that the model has not read, and where they stand. A full context begins anew with its second half.
  struct Unread {
    int64_t position = 0;
    std::span<const int32_t> tokens;
  };
  Unread take_unread(int64_t context_length) {
    if (std::ssize(window_) > context_length) {
      window_.erase(window_.begin(), window_.end() - std::max<int64_t>(1, context_length / 2));
      read_ = 0;
      result_.beyond_context = true;
    }
    const int64_t position = std::exchange(read_, std::ssize(window_));
    return {position, std::span(window_).subspan(static_cast<size_t>(position))};
  }

  // The text that one more token adds.
  std::string choose(std::vector<float> logits, const data::Tokenizer& tokenizer) {
    logits.resize(static_cast<size_t>(tokenizer.vocab_size()));
    if (options_->repetition_penalty != 1.0)
      penalise(logits, std::vector(seen_.begin(), seen_.end()), options_->repetition_penalty);
    const std::array<uint32_t, 4> words =
        philox(named_key(options_->seed, "generate"),
               {static_cast<uint32_t>(result_.tokens), static_cast<uint32_t>(number_), 0, 0});
    const int32_t next = sample_token(std::move(logits), *options_, uniform_from_bits(words[0]));
    ++result_.tokens;
    if (next == tokenizer.eod()) return finish(TextEnd::end_of_document);
    window_.push_back(next);
    seen_.insert(next);
    std::string text = stops_.add(utf8_.add(tokenizer.decode(std::span(&next, 1))));
    if (stops_.found()) return text + finish(TextEnd::stop_string);
    if (result_.tokens >= options_->max_tokens) return text + finish(TextEnd::max_tokens);
    return text;
  }

 private:
  std::string finish(TextEnd end) {
    ended_ = true;
    result_.end = end;
    std::string rest = stops_.add(utf8_.finish());
    return rest + stops_.finish();
  }

  size_t prompt_;
  uint64_t number_;
  int64_t sequence_;
  const GenerateOptions* options_;
  std::vector<int32_t> window_;  // what the model may look back at
  int64_t read_ = 0;             // tokens of it that it has read
  std::set<int32_t> seen_;
  data::Utf8Stream utf8_;
  StopStrings stops_;
  Generation result_;
  bool ended_ = false;
};

// The logits after each of the texts: single tokens together, longer pieces one by one.
std::vector<std::vector<float>> read_on(TextModel& model, std::vector<Text>& texts) {
  std::vector<std::vector<float>> logits(texts.size());
  std::vector<TextModel::Next> single;
  std::vector<size_t> of_single;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto [position, tokens] = texts[i].take_unread(model.context_length());
    if (tokens.size() == 1) {
      single.push_back({.sequence = texts[i].sequence(), .position = position, .token = tokens[0]});
      of_single.push_back(i);
    } else {
      logits[i] = model.read(texts[i].sequence(), position, tokens);
    }
  }
  if (single.empty()) return logits;
  std::vector<std::vector<float>> found = model.read_each(single);
  for (size_t i = 0; i < found.size(); ++i) logits[of_single[i]] = std::move(found[i]);
  return logits;
}

}  // namespace

void generate(TextModel& model, const std::vector<Prompt>& prompts, const GenerateOptions& options,
              const GenerateEvents& events) {
  check(options);
  std::vector<std::vector<int32_t>> tokens;
  for (const Prompt& prompt : prompts) tokens.push_back(encode_prompt(model, prompt.text));
  std::vector<int64_t> free;
  for (int64_t sequence = model.sequences() - 1; sequence >= 0; --sequence) free.push_back(sequence);
  std::vector<Text> texts;
  size_t next = 0;
  while (next < prompts.size() || !texts.empty()) {
    for (; next < prompts.size() && !free.empty(); ++next) {
      texts.emplace_back(next, static_cast<uint64_t>(prompts[next].number), free.back(), std::move(tokens[next]),
                         options);
      free.pop_back();
    }
    std::vector<std::vector<float>> logits = read_on(model, texts);
    for (size_t i = 0; i < texts.size(); ++i) {
      events.text(texts[i].prompt(), texts[i].choose(std::move(logits[i]), model.tokenizer()));
      if (!texts[i].ended()) continue;
      events.end(texts[i].prompt(), texts[i].result());
      free.push_back(texts[i].sequence());
    }
    std::erase_if(texts, [](const Text& text) { return text.ended(); });
  }
}

PromptLogits prompt_logits(TextModel& model, const std::string& prompt) {
  PromptLogits result{.tokens = encode_prompt(model, prompt), .logits = {}, .vocabulary = model.vocabulary()};
  for (size_t i = 0; i < result.tokens.size(); ++i) {
    const std::vector<float> logits = model.read(0, static_cast<int64_t>(i), std::span(result.tokens).subspan(i, 1));
    result.logits.insert(result.logits.end(), logits.begin(), logits.end());
  }
  return result;
}

}  // namespace megalith::train
