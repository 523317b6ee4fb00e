#include "config/scalar.h"

#include <gtest/gtest.h>

#include <limits>

namespace megalith::config {
namespace {

TEST(Scalar, BoolsOfYaml11) {
  for (const char* text : {"true", "True", "TRUE", "yes", "on"}) EXPECT_EQ(read_bool(text), true) << text;
  for (const char* text : {"false", "False", "no", "Off"}) EXPECT_EQ(read_bool(text), false) << text;
  for (const char* text : {"", "1", "0", "truee", "null"}) EXPECT_FALSE(read_bool(text)) << text;
}

TEST(Scalar, WholeNumbers) {
  EXPECT_EQ(read_int("12"), 12);
  EXPECT_EQ(read_int("-3"), -3);
  EXPECT_EQ(read_int("+3"), 3);
  EXPECT_EQ(read_int("1_000"), 1000);
  EXPECT_EQ(read_int("1e5"), 100000);
  EXPECT_EQ(read_int("0.0"), 0);
  EXPECT_EQ(read_int("9223372036854775807"), std::numeric_limits<int64_t>::max());
  for (const char* text : {"", "12.5", "1e-3", "0123", "9223372036854775808", "99999999999999999999", "1e19", "12a",
                           " 1", "_1", "1_", "--1", "+-1", "++1", "0x10", "nan", "inf", "1 2"}) {
    EXPECT_FALSE(read_int(text)) << text;
  }
}

TEST(Scalar, FiniteNumbers) {
  EXPECT_EQ(read_double("6e-4"), 6e-4);
  EXPECT_EQ(read_double(".5"), 0.5);
  EXPECT_EQ(read_double("-1"), -1.0);
  for (const char* text : {"", "nan", "inf", "-inf", ".inf", "1e999", "one", "1,5", "0.1.2"}) {
    EXPECT_FALSE(read_double(text)) << text;
  }
}

TEST(Scalar, NumbersReadBackTheSame) {
  for (const double value :
       {0.0, 1.0, -1.0, 0.1, 1e-5, 6e-4, 1e20, 500000.0, 0.008944, 5e-324, 1.7976931348623157e308}) {
    const std::string text = write_double(value);
    EXPECT_EQ(read_double(text), value) << text;
    EXPECT_NE(text.find('.'), std::string::npos) << text;  // without a point, YAML 1.1 readers see a word or an integer
  }
  EXPECT_EQ(write_double(1e-5), "1.0e-05");
}

TEST(Scalar, TextsAreQuotedWhereYamlWouldReadSomethingElse) {
  EXPECT_EQ(write_string("runs/demo-1.x"), "runs/demo-1.x");
  EXPECT_EQ(write_string("true"), "\"true\"");
  EXPECT_EQ(write_string("null"), "\"null\"");
  EXPECT_EQ(write_string("32"), "\"32\"");
  EXPECT_EQ(write_string("969, 30, 1"), "\"969, 30, 1\"");
  EXPECT_EQ(write_string("a\"b\\c\n"), "\"a\\\"b\\\\c\\x0a\"");
  EXPECT_EQ(write_string(""), "\"\"");
}

TEST(Scalar, Utf8) {
  EXPECT_TRUE(is_utf8("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"));
  for (const char* text : {"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\xe2\x82"}) {
    EXPECT_FALSE(is_utf8(text)) << text;
  }
}

}  // namespace
}  // namespace megalith::config
