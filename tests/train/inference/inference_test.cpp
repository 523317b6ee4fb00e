#include "train/inference/inference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "expect_error.h"
#include "temp_dir.h"
#include "train/inference/evaluate_text.h"
#include "train/inference/generate.h"
#include "train/inference/stop_strings.h"
#include "train/tiny_run.h"

namespace megalith::train::testing {
namespace {

using ::megalith::testing::TempDir;

std::vector<std::string> texts_of(TextModel& model, const std::vector<std::string>& texts,
                                  const GenerateOptions& options) {
  std::vector<Prompt> prompts;
  for (const std::string& text : texts) prompts.push_back({.text = text, .number = std::ssize(prompts)});
  std::vector<std::string> written(texts.size());
  generate(model, prompts, options,
           {.text = [&](size_t prompt, std::string_view piece) { written[prompt] += piece; },
            .end = [](size_t, const Generation&) {}});
  return written;
}

TEST(SampleToken, FollowsTheOptions) {
  const std::vector<float> logits{0.0F, 2.0F, 1.0F, -1.0F};
  EXPECT_EQ(sample_token(logits, {.temperature = 0.0}, 0.999), 1);
  EXPECT_EQ(sample_token(logits, {.top_k = 1}, 0.999), 1);
  EXPECT_EQ(sample_token(logits, {.top_k = 2}, 0.999), 2);
  EXPECT_EQ(sample_token(logits, {.top_p = 0.1}, 0.999), 1);
  EXPECT_EQ(sample_token(logits, {}, 0.9999), 3);
  EXPECT_EQ(sample_token(logits, {}, 0.0), 1);
  // Probabilities 0.0871, 0.6439, 0.2369, 0.0321: in order of likelihood 1, 2, 0, 3.
  EXPECT_EQ(sample_token(logits, {}, 0.64), 1);
  EXPECT_EQ(sample_token(logits, {}, 0.65), 2);
  EXPECT_EQ(sample_token(logits, {}, 0.89), 0);
}

TEST(Inference, EvaluatesAndGeneratesFromARun) {
  const TempDir dir;
  const Summary summary = train_quietly(tiny_run(kTinyLlama, dir / "run", {"trainer.max_steps=5"}));
  checkpoint::Loaded checkpoint = open_checkpoint(dir / "run");
  const config::Run run = config_of(checkpoint, {});
  const Evaluation evaluation = evaluate(checkpoint, run, {.batches = 3});
  EXPECT_EQ(evaluation.step, 5);
  EXPECT_EQ(evaluation.tokens, 3 * 2 * 16);
  EXPECT_NEAR(evaluation.loss, *summary.train_loss, 1.5);

  TextModel model(checkpoint, run);
  // More tokens than the context holds.
  const auto text_of = [&](uint64_t seed) { return texts_of(model, {"ab"}, {.max_tokens = 40, .seed = seed})[0]; };
  EXPECT_EQ(text_of(1), text_of(1));
  EXPECT_NE(text_of(1), text_of(2));
}

TEST(Inference, LogitsOfAPromptAreThoseThatTextIsDrawnFrom) {
  const TempDir dir;
  // The model knows more ids than its tokenizer has texts for.
  train_quietly(tiny_run(kTinyLlama, dir / "run", {"model.tokenizer.vocab_size=300"}));
  checkpoint::Loaded checkpoint = open_checkpoint(dir / "run");
  TextModel model(checkpoint, config_of(checkpoint, {}));
  const PromptLogits read = prompt_logits(model, "abc");
  EXPECT_EQ(read.tokens, (std::vector<int32_t>{'a', 'b', 'c'}));
  EXPECT_EQ(read.vocabulary, 300);
  ASSERT_EQ(read.logits.size(), 3u * 300u);
  const std::vector<float> last(read.logits.end() - 300, read.logits.end() - 300 + 256);
  EXPECT_EQ(texts_of(model, {"abc"}, {.max_tokens = 1, .temperature = 0.0})[0],
            std::string(1, static_cast<char>(sample_token(last, {.temperature = 0.0}, 0.0))));

  EXPECT_THROW(prompt_logits(model, std::string(17, 'a')), Error);
  EXPECT_THROW(texts_of(model, {"abc", std::string(17, 'a')}, {}), Error);
}

// What a prompt becomes depends neither on the prompts beside it nor on how many go on together.
TEST(Inference, PromptsThatGoOnTogetherBecomeWhatTheyBecomeAlone) {
  const TempDir dir;
  train_quietly(tiny_run(kTinyLlama, dir / "run"));
  checkpoint::Loaded checkpoint = open_checkpoint(dir / "run");
  const config::Run run = config_of(checkpoint, {});
  const std::vector<std::string> prompts{"abcabc", "k", "lmno", "", "the longest one", "abcabc", "p"};
  for (const double temperature : {0.0, 0.9}) {
    // Beyond the context of 16 tokens, so that texts begin anew at different times.
    const GenerateOptions options{.max_tokens = 30, .temperature = temperature, .repetition_penalty = 1.1, .seed = 5};
    TextModel alone(checkpoint, run);
    const std::vector<std::string> expected = texts_of(alone, prompts, options);
    EXPECT_EQ(expected[0] == expected[5], temperature == 0.0) << "random numbers are a prompt's own";
    for (const int64_t together : {2, 3, 7}) {
      TextModel model(checkpoint, run, together);
      EXPECT_EQ(texts_of(model, prompts, options), expected) << together << " at a time";
    }
  }
}

// Log-softmax by hand, of logits after each prefix that a window shows.
double nats_by_hand(TextModel& model, std::vector<int32_t> window, int32_t target) {
  const std::vector<float> logits = model.read(0, 0, window);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  return std::log(sum) - logits[static_cast<size_t>(target)];
}

TEST(EvaluateText, EveryTokenIsPredictedOnceInItsWindow) {
  const TempDir dir;
  train_quietly(tiny_run(kTinyLlama, dir / "run", {"trainer.max_steps=3"}));
  checkpoint::Loaded checkpoint = open_checkpoint(dir / "run");
  TextModel model(checkpoint, config_of(checkpoint, {}));
  std::vector<int32_t> ids;
  for (uint32_t i = 0; i < 37; ++i) ids.push_back(static_cast<int32_t>('a' + philox(3, {i, 0, 0, 0})[0] % 16));
  std::vector<int32_t> tokens{256};
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  // Where the window of each target begins: they end at 16, 32 and 37, or with strides of 6 at 16, 22, 28, 34 and 37.
  const auto expected = [&](const std::vector<size_t>& ends) {
    double nats = 0.0;
    for (size_t target = 1; target <= ids.size(); ++target) {
      const size_t end = *std::find_if(ends.begin(), ends.end(), [&](size_t at) { return at >= target; });
      const auto from = tokens.begin() + static_cast<int64_t>(end - 16);
      nats += nats_by_hand(model, {from, tokens.begin() + static_cast<int64_t>(target)}, tokens[target]);
    }
    return nats;
  };
  EXPECT_NEAR(nats_of_document(model, ids, {.first = 256}), expected({16, 32, 37}), 1e-3);
  EXPECT_NEAR(nats_of_document(model, ids, {.first = 256, .stride = 6}), expected({16, 22, 28, 34, 37}), 1e-3);
  const std::vector<int32_t> two{'a', 'b'};
  EXPECT_NEAR(nats_of_document(model, two, {.first = 256}),
              nats_by_hand(model, {256}, 'a') + nats_by_hand(model, {256, 'a'}, 'b'), 1e-4);
}

TEST(StopStrings, HoldBackWhatMayBeOneOfThem) {
  StopStrings stops({"END", "\n\n"});
  EXPECT_EQ(stops.add("one EN"), "one ");
  EXPECT_EQ(stops.add("TER\n"), "ENTER");
  EXPECT_EQ(stops.add("two"), "\ntwo");
  EXPECT_EQ(stops.add(" E"), " ");
  EXPECT_EQ(stops.add("ND of\n\n"), "");
  EXPECT_TRUE(stops.found());
  EXPECT_EQ(stops.finish(), "");
  StopStrings at_end({"END"});
  EXPECT_EQ(at_end.add("x EN"), "x ");
  EXPECT_EQ(at_end.finish(), "EN");
  EXPECT_FALSE(at_end.found());
  StopStrings first({"bc", "ab"});
  EXPECT_EQ(first.add("xabc"), "x");
}

TEST(SampleToken, RepeatedTokensBecomeLessLikely) {
  std::vector<float> logits{2.0F, -2.0F, 1.0F};
  penalise(logits, std::vector<int32_t>{0, 1}, 4.0);
  EXPECT_EQ(logits, (std::vector<float>{0.5F, -8.0F, 1.0F}));
}

TEST(Inference, ACheckpointOfAnotherModelIsRefusedBeforeATextIsWritten) {
  const TempDir dir;
  train_quietly(tiny_run(kTinyLlama, dir / "run", {"trainer.max_steps=1"}));
  checkpoint::Loaded checkpoint = open_checkpoint(dir / "run");
  for (const char* key : {"model.num_layers=1", "model.num_layers=3", "model.ffn_hidden_size=48"}) {
    const config::Run run = config_of(checkpoint, {key});
    expect_error(ErrorKind::user, {"does not fit this config"}, [&] { TextModel(checkpoint, run); });
  }
}

TEST(Inference, TellsWhatIsMissing) {
  const TempDir dir;
  EXPECT_THROW(open_checkpoint(dir / "nowhere"), Error);
  EXPECT_THROW(open_checkpoint(dir.path()), Error);
}

}  // namespace
}  // namespace megalith::train::testing
