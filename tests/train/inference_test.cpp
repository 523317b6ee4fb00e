#include "train/inference.h"

#include <gtest/gtest.h>

#include "temp_dir.h"
#include "tiny_run.h"

namespace megalith::train::testing {
namespace {

using ::megalith::testing::TempDir;

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

  const auto text_of = [&](uint64_t seed) {
    std::string text;
    // More tokens than the context holds.
    generate(checkpoint, run, {.prompt = "ab", .max_tokens = 40, .seed = seed},
             [&](std::string_view piece) { text += piece; });
    return text;
  };
  EXPECT_EQ(text_of(1), text_of(1));
  EXPECT_NE(text_of(1), text_of(2));
}

TEST(Inference, LogitsOfAPromptAreThoseThatTextIsDrawnFrom) {
  const TempDir dir;
  // The model knows more ids than its tokenizer has texts for.
  train_quietly(tiny_run(kTinyLlama, dir / "run", {"model.tokenizer.vocab_size=300"}));
  checkpoint::Loaded checkpoint = open_checkpoint(dir / "run");
  const config::Run run = config_of(checkpoint, {});
  const PromptLogits read = prompt_logits(checkpoint, run, "abc");
  EXPECT_EQ(read.tokens, (std::vector<int32_t>{'a', 'b', 'c'}));
  EXPECT_EQ(read.vocabulary, 300);
  ASSERT_EQ(read.logits.size(), 3u * 300u);
  const std::vector<float> last(read.logits.end() - 300, read.logits.end() - 300 + 256);
  std::string drawn;
  generate(checkpoint, run, {.prompt = "abc", .max_tokens = 1, .temperature = 0.0},
           [&](std::string_view piece) { drawn += piece; });
  EXPECT_EQ(drawn, std::string(1, static_cast<char>(sample_token(last, {.temperature = 0.0}, 0.0))));

  EXPECT_THROW(prompt_logits(checkpoint, run, std::string(17, 'a')), Error);
}

TEST(Inference, TellsWhatIsMissing) {
  const TempDir dir;
  EXPECT_THROW(open_checkpoint(dir / "nowhere"), Error);
  EXPECT_THROW(open_checkpoint(dir.path()), Error);
}

}  // namespace
}  // namespace megalith::train::testing
