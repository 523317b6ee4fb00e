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

TEST(TextTable, CsvQuotesWhatNeedsIt) {
  EXPECT_EQ(csv_line({"", "a", "b,c", "d\"e"}), ",a,\"b,c\",\"d\"\"e\"\r\n");
}

}  // namespace
}  // namespace megalith::observe
