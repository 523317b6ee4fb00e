#include "observe/draw/wrapped_text.h"

#include <gtest/gtest.h>

namespace megalith::observe {
namespace {

TEST(WrapLines, LeavesWhatFits) {
  const std::string text = "run              a in runs/a\n\n  memory   size  holds\n";
  EXPECT_EQ(wrap_lines(text, 40), text);
  EXPECT_EQ(wrap_lines("", 40), "");
}

TEST(WrapLines, GoOnBelowTheLastColumn) {
  EXPECT_EQ(wrap_lines("model            4 layers, width 128, 4 heads\n", 34),
            "model            4 layers, width\n"
            "                 128, 4 heads\n");
  EXPECT_EQ(wrap_lines("  optimizer  6.8 KiB  where each piece lies\n", 32),
            "  optimizer  6.8 KiB  where each\n"
            "                      piece lies\n");
}

TEST(WrapLines, GoOnTwoBlanksInWithoutATable) {
  EXPECT_EQ(wrap_lines("ignored: model.sharp (NCCL decides)\n", 24),
            "ignored: model.sharp\n"
            "  (NCCL decides)\n");
  EXPECT_EQ(wrap_lines("  one two three\n", 10),
            "  one two\n"
            "  three\n");
}

TEST(WrapLines, CountCharactersAndKeepLongWordsWhole) {
  EXPECT_EQ(wrap_lines("größe é über\n", 12), "größe é über\n");
  EXPECT_EQ(wrap_lines("data  /a/very/long/path.bin b\n", 12),
            "data  /a/very/long/path.bin\n"
            "      b\n");
}

}  // namespace
}  // namespace megalith::observe
