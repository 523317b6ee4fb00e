#include <gtest/gtest.h>

#include "expect_error.h"
#include "plan/step_time/constants.h"

namespace megalith::plan {
namespace {

TEST(Constants, EachHasOneName) {
  static_assert(sizeof(Constants) == kConstants * sizeof(double));
  for (size_t i = 0; i < kConstants; ++i) {
    EXPECT_GT(fitted_constants().*kNamedConstants[i].value, 0.0);
    for (size_t j = 0; j < i; ++j) EXPECT_NE(kNamedConstants[i].value, kNamedConstants[j].value);
  }
}

TEST(Constants, AFileReplacesSome) {
  const Constants constants = parse_constants("name,value\nlink_share,0.5\n", "mine.csv");
  EXPECT_EQ(constants.link_share, 0.5);
  EXPECT_EQ(constants.network_share, fitted_constants().network_share);
}

TEST(Constants, WrongFiles) {
  const auto expect = [](const std::string& text, const std::string& message) {
    expect_error(ErrorKind::user, {message}, [&] { parse_constants(text, "mine.csv"); });
  };
  expect("link_share,0.5\n", "must be 'name,value'");
  expect("name,value\nlink,0.5\n", "line 2: there is no constant 'link'");
  expect("name,value\nlink_share,0\n", "line 2: '0' is not a number above 0");
  expect("name,value\nlink_share,nan\n", "'nan' is not a number above 0");
}

}  // namespace
}  // namespace megalith::plan
