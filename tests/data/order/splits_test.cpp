#include "data/order/splits.h"

#include <gtest/gtest.h>

#include "data/data_testing.h"

namespace megalith::data {
namespace {

std::vector<int64_t> bounds(const std::string& text, int64_t sequences) {
  const Splits splits(text);
  const SequenceRange train = splits.range(Split::train, sequences);
  const SequenceRange valid = splits.range(Split::valid, sequences);
  const SequenceRange test = splits.range(Split::test, sequences);
  EXPECT_EQ(train.end, valid.begin);
  EXPECT_EQ(valid.end, test.begin);
  return {train.begin, train.end, valid.end, test.end};
}

using Bounds = std::vector<int64_t>;

// As computed by Python from Megatron's rules.
TEST(Splits, CutsAsMegatron) {
  EXPECT_EQ(bounds("969, 30, 1", 1000), (Bounds{0, 969, 999, 1000}));
  EXPECT_EQ(bounds("969, 30, 1", 4), (Bounds{0, 4, 4, 4}));
  EXPECT_EQ(bounds("1,1,1", 100000), (Bounds{0, 33333, 66667, 100000}));
  EXPECT_EQ(bounds("1,1,1", 10), (Bounds{0, 3, 7, 10}));
  EXPECT_EQ(bounds("99990,8,2", 123457), (Bounds{0, 123445, 123455, 123457}));
}

TEST(Splits, RoundsHalfToEven) {
  EXPECT_EQ(bounds(".5,.5", 5), (Bounds{0, 2, 5, 5}));
  EXPECT_EQ(bounds(".5,.5", 7), (Bounds{0, 4, 7, 7}));
}

TEST(Splits, TakesSlashesAndMissingNumbers) {
  EXPECT_EQ(bounds("90/10", 100), (Bounds{0, 90, 100, 100}));
  EXPECT_EQ(bounds("100", 10), (Bounds{0, 10, 10, 10}));
  EXPECT_EQ(bounds("0,1", 10), (Bounds{0, 0, 10, 10}));
}

TEST(Splits, RefusesWhatIsNoSplit) {
  for (const char* text : {"", "none", "0,0,0", "1,2,3,4", "1.2.3", "."}) {
    expect_error(ErrorKind::user, {text}, [text] { Splits{text}; });
  }
}

}  // namespace
}  // namespace megalith::data
