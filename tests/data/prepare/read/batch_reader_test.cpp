#include "data/prepare/read/batch_reader.h"

#include <gtest/gtest.h>

#include "data/prepare/prepare_testing.h"

namespace megalith::data {
namespace {

class BatchReaderTest : public ::testing::Test {
 protected:
  std::vector<RawBatch> read(const std::string& text, Cut cut, BatchOptions options) {
    write_bytes(directory_ / "file", text);
    BatchReader reader(directory_ / "file", cut, options);
    std::vector<RawBatch> batches;
    do {
      batches.push_back(reader.next());
    } while (!batches.back().last);
    return batches;
  }

  TempDir directory_;
};

TEST_F(BatchReaderTest, CutsAtLinesAndLosesNothing) {
  std::string text;
  for (int i = 0; i < 500; ++i)
    text += std::string(static_cast<size_t>(i * i % 37), 'x') + (i % 3 == 0 ? "\r\n" : "\n");
  for (const std::string tail : {"", "no newline"}) {
    for (const int64_t size : {1, 2, 3, 16, 1000, 100'000}) {
      std::string joined;
      for (const RawBatch& batch : read(text + tail, Cut::lines, {.batch_bytes = size})) {
        EXPECT_EQ(batch.offset, std::ssize(joined));
        joined += batch.text.view();
        EXPECT_TRUE(batch.last || batch.text.view().ends_with('\n'));
      }
      EXPECT_EQ(joined, text + tail);
    }
  }
}

TEST_F(BatchReaderTest, CutsParagraphsAtBlankLines) {
  const std::string text = "\n \na\nb\n\n\t\n\nc  \n\r\nd";
  for (const int64_t size : {1, 2, 3, 5, 7, 100}) {
    std::string joined;
    for (const RawBatch& batch : read(text, Cut::blank_lines, {.batch_bytes = size})) {
      joined += batch.text.view();
      const std::string_view view = batch.text.view();
      if (batch.last || view.empty()) continue;
      const std::string_view content = view.substr(0, view.size() - 1);
      EXPECT_TRUE(is_blank(content.substr(content.rfind('\n') + 1))) << view;
    }
    EXPECT_EQ(joined, text);
  }
}

TEST_F(BatchReaderTest, SkipsAByteOrderMark) {
  const auto batches = read("\xEF\xBB\xBF{}\n", Cut::lines, {});
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_TRUE(batches[0].byte_order_mark);
  EXPECT_EQ(batches[0].text.view(), "{}\n");
  EXPECT_EQ(batches[0].offset, 3);
  // Only at the start of the file.
  EXPECT_EQ(read("a\n\xEF\xBB\xBF", Cut::lines, {})[0].text.view(), "a\n\xEF\xBB\xBF");
  EXPECT_EQ(read("\xEF\xBB\xBF", Cut::whole_file, {})[0].text.view(), "");
}

TEST_F(BatchReaderTest, PassesOverDocumentsAboveTheLimit) {
  const std::string huge(1'000'000, 'x');
  const std::string text = "a\n" + huge + "\nb\n" + huge;
  std::string joined;
  int too_long = 0;
  for (const RawBatch& batch : read(text, Cut::lines, {.batch_bytes = 1000, .max_document_bytes = 5000})) {
    joined += batch.text.view();
    too_long += batch.too_long ? 1 : 0;
    EXPECT_LT(batch.text.size(), 10'000u);
  }
  EXPECT_EQ(joined, "a\nb\n");
  EXPECT_EQ(too_long, 2);
  joined.clear();
  for (const RawBatch& batch :
       read("a\n\n" + huge + "\n\nb", Cut::blank_lines, {.batch_bytes = 1000, .max_document_bytes = 5000})) {
    joined += batch.text.view();
  }
  EXPECT_EQ(joined, "a\n\nb");
}

}  // namespace
}  // namespace megalith::data
