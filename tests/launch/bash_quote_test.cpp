#include "launch/bash_quote.h"

#include <gtest/gtest.h>

#include <random>

#include "expect_error.h"
#include "launch/tool.h"

namespace megalith::launch {
namespace {

TEST(BashQuote, PlainWordsStayAsTheyAre) {
  EXPECT_EQ(bash_quoted("trainer.max_steps=100"), "trainer.max_steps=100");
  EXPECT_EQ(bash_quoted("/data/a-b_c.yaml"), "/data/a-b_c.yaml");
  EXPECT_EQ(bash_quoted(""), "''");
  EXPECT_EQ(bash_quoted("a b"), "'a b'");
  EXPECT_EQ(bash_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(bash_quoted("a\nb'"), "$'a\\nb\\''");
  EXPECT_EQ(bash_quoted("[.5,x]"), "'[.5,x]'");
  EXPECT_NE(user_error_of([] { bash_quoted(std::string("a\0b", 3)); }).find("zero byte"), std::string::npos);
}

TEST(BashQuote, BashGivesTheSameBytesBack) {
  const std::vector<std::string> pieces = {
      "a", " ", "'", "\"", "$", "$(x)", "`",    "\\", "\n", "\t", "!", "*",  "~",    "#",    "&",    "|",  ";",
      "<", ">", "(", "{",  "[", "\x01", "\x7f", "\r", "=",  "%d", "ü", "漢", "🙂", "${y}", "$'z'", "-n", "\xff"};
  std::mt19937 random(1);
  std::vector<std::string> values;
  std::string script = "printf '%s\\0'";
  for (int i = 0; i < 1000; ++i) {
    std::string value;
    for (size_t length = random() % 8; length > 0; --length) value += pieces[random() % pieces.size()];
    script.append(" ").append(bash_quoted(value));
    values.push_back(std::move(value));
  }
  std::string expected;
  for (const std::string& value : values) expected += value + '\0';
  const ToolAnswer answer = run_tool({.command = {"bash"}, .input = script});
  EXPECT_EQ(answer.exit_code, 0) << answer.errors;
  EXPECT_EQ(answer.output, expected);
}

TEST(BashQuote, CommandsHaveAnOptionOnEachLine) {
  EXPECT_EQ(bash_command({"megalith", "train", "-c", "a b.yaml", "--flag", "x=1", "--n=2", "y=3"}, 2),
            "megalith train \\\n  -c 'a b.yaml' \\\n  --flag x=1 \\\n  --n=2 \\\n  y=3");
}

TEST(Tool, AnswersOrIsEnded) {
  const ToolAnswer echo = run_tool({.command = {"cat"}, .input = std::string(1 << 20, 'x')});
  EXPECT_TRUE(echo.good());
  EXPECT_EQ(echo.output.size(), size_t{1} << 20);
  const ToolAnswer slow = run_tool({.command = {"sleep", "60"}, .seconds = 0.2});
  EXPECT_FALSE(slow.good());
  EXPECT_EQ(slow.words(), "it did not answer in time");
  EXPECT_EQ(run_tool({.command = {"false"}}).exit_code, 1);
  EXPECT_TRUE(run_tool({.command = {"true"}, .input = std::string(1 << 20, 'x')}).good());
  EXPECT_THROW(run_tool({.command = {"there-is-no-such-tool"}}), Error);
  EXPECT_TRUE(has_tool("bash"));
  EXPECT_FALSE(has_tool("there-is-no-such-tool"));
}

TEST(Tool, VariablesAreKeptFromIt) {
  ::setenv("SBATCH_PARTITION", "stray", 1);
  ::setenv("SBATCH_KEPT", "kept", 1);
  const ToolAnswer answer = run_tool({.command = {"env"}, .without = {"SBATCH_"}, .keep = {"SBATCH_KEPT"}});
  ::unsetenv("SBATCH_PARTITION");
  ::unsetenv("SBATCH_KEPT");
  EXPECT_EQ(answer.output.find("stray"), std::string::npos);
  EXPECT_NE(answer.output.find("SBATCH_KEPT=kept"), std::string::npos);
}

}  // namespace
}  // namespace megalith::launch
