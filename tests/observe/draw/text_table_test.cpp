#include "observe/draw/text_table.h"

#include <gtest/gtest.h>

namespace megalith::observe {
namespace {

TEST(TextTable, GridIsTabulates) {
  // print(tabulate([["Loads", 44], ["Total Events", "x"]], headers=["Metric", "Value"], tablefmt="grid"))
  EXPECT_EQ(grid_table({"Metric", "Value"}, {{"Loads", "44"}, {"Total Events", "x"}}),
            "+--------------+---------+\n"
            "| Metric       | Value   |\n"
            "+==============+=========+\n"
            "| Loads        | 44      |\n"
            "+--------------+---------+\n"
            "| Total Events | x       |\n"
            "+--------------+---------+\n");
}

TEST(TextTable, PlainAlignsNumbersToTheRight) {
  EXPECT_EQ(plain_table({"use", "seconds"}, {{"größe", "1.5"}, {"b", "100.25"}}),
            "use    seconds\n"
            "größe      1.5\n"
            "b       100.25\n");
}

TEST(TextTable, GoesOnBelowWhereItIsTooWide) {
  const TextRow header{"use", "seconds", "share", "of"};
  const std::vector<TextRow> rows{{"a", "1.5", "20", "x"}};
  EXPECT_EQ(fitting_table(header, rows, 0), plain_table(header, rows));
  EXPECT_EQ(fitting_table(header, rows, 23), plain_table(header, rows));
  EXPECT_EQ(fitting_table(header, rows, 22),
            "use  seconds  share\n"
            "a        1.5     20\n"
            "\n"
            "use  of\n"
            "a     x\n");
  EXPECT_EQ(fitting_table({"use"}, {{"a"}}, 2), "use\na\n");
}

TEST(TextTable, CsvQuotesWhatNeedsIt) {
  EXPECT_EQ(csv_line({"", "a", "b,c", "d\"e"}), ",a,\"b,c\",\"d\"\"e\"\r\n");
}

}  // namespace
}  // namespace megalith::observe
