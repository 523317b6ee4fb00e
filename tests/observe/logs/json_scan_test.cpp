#include "observe/logs/json_scan.h"

#include <gtest/gtest.h>

#include <cmath>

namespace megalith::observe {
namespace {

const JsonMember* find(const std::vector<JsonMember>& members, std::string_view key) {
  for (const JsonMember& member : members) {
    if (member.key == key) return &member;
  }
  return nullptr;
}

TEST(JsonScan, ListsMembersOfTwoLevels) {
  std::vector<JsonMember> members;
  ASSERT_TRUE(scan_json_object(
      R"( {"a": 1.5e-3, "b": "x\"\u00fc\n", "c": {"d": true, "deep": {"e": 1}}, "f": [1, {"g": 2}], "h": null} )",
      members));
  EXPECT_EQ(number_of(*find(members, "a")), 1.5e-3);
  EXPECT_EQ(text_of(*find(members, "b")), "x\"ü\n");
  EXPECT_EQ(find(members, "d")->parent, "c");
  EXPECT_EQ(find(members, "d")->text, "true");
  EXPECT_EQ(find(members, "deep")->kind, JsonKind::object);
  EXPECT_EQ(find(members, "e"), nullptr);
  EXPECT_EQ(find(members, "g"), nullptr);
  EXPECT_EQ(find(members, "f")->text, R"([1, {"g": 2}])");
  EXPECT_EQ(find(members, "h")->parent, "");
}

TEST(JsonScan, TakesPythonsNumbers) {
  std::vector<JsonMember> members;
  ASSERT_TRUE(scan_json_object(R"({"n": NaN, "i": -Infinity, "s": "inf", "w": 40.0, "h": 0.5, "b": 1e300})", members));
  EXPECT_TRUE(std::isnan(*number_of(*find(members, "n"))));
  EXPECT_EQ(number_of(*find(members, "i")), -INFINITY);
  EXPECT_EQ(number_of(*find(members, "s")), INFINITY);
  EXPECT_EQ(whole_number_of(*find(members, "w")), 40);
  EXPECT_EQ(whole_number_of(*find(members, "h")), std::nullopt);
  EXPECT_EQ(whole_number_of(*find(members, "b")), std::nullopt);
  EXPECT_EQ(whole_number_of(*find(members, "n")), std::nullopt);
}

TEST(JsonScan, RefusesWhatIsNoObject) {
  std::vector<JsonMember> members;
  for (const char* text : {"",
                           "{",
                           "[]",
                           "1",
                           R"({"a":1)",
                           R"({"a":1}})",
                           R"({"a":1,})",
                           R"({"a" 1})",
                           R"({a:1})",
                           R"({"a":01})",
                           R"({"a":1.})",
                           R"({"a":-})",
                           R"({"a":tru})",
                           R"({"a":"x)",
                           R"({"a":"\x"})",
                           R"({"a":"\u12g4"})",
                           "{\"a\":\"tab\t\"}",
                           R"({"a":[1,]})",
                           R"({"a":1} x)",
                           R"({"a":+1})",
                           R"({"a":1e})"}) {
    EXPECT_FALSE(scan_json_object(text, members)) << text;
  }
  EXPECT_TRUE(scan_json_object("{}", members));
  EXPECT_TRUE(members.empty());
}

TEST(JsonScan, RefusesBottomlessNesting) {
  std::vector<JsonMember> members;
  const std::string deep(100'000, '[');
  EXPECT_FALSE(scan_json_object("{\"a\":" + deep, members));
}

}  // namespace
}  // namespace megalith::observe
