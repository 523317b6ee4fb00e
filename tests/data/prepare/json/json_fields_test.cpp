#include "data/prepare/json/json_fields.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "data/prepare/json/document_fields.h"
#include "data/prepare/json/json_text.h"
#include "data/prepare/prepare_testing.h"
#include "data/prepare/read/text_buffer.h"
#include "data/tokenizer/utf8_stream.h"

namespace megalith::data {
namespace {

class JsonFieldsTest : public ::testing::Test {
 protected:
  void SetUp() override { MEGALITH_JSON_OR_SKIP(); }

  // The text under the only path, or "!" and the reason.
  static std::string read(const std::string& line, const std::string& path = "text", BadText policy = BadText::reject) {
    JsonFields fields({path}, policy);
    TextBuffer buffer;
    buffer.append(line);
    if (const auto problem = fields.read(buffer.view())) return "!" + std::string(name_of(problem->kind));
    const JsonValue value = fields.values()[0];
    return value.type == "string" ? std::string(value.text) : "!" + std::string(value.type);
  }
};

constexpr const char* kReplacement = "\xEF\xBF\xBD";

TEST_F(JsonFieldsTest, FindsTextAmongOtherFields) {
  EXPECT_EQ(read(R"({"text": "a"})"), "a");
  EXPECT_EQ(read(R"( {"id":1,"meta":{"text":"no","x":[1,{"text":"no"}]},"text":"yes","after":null} )"), "yes");
  EXPECT_EQ(read(R"({"text": ""})"), "");
  EXPECT_EQ(read(R"({})"), "!");
  EXPECT_EQ(read(R"({"Text":"a"})"), "!");
  EXPECT_EQ(read(R"({"texts":"a","tex":"b"})"), "!");
}

TEST_F(JsonFieldsTest, ResolvesEscapesInTextAndKeys) {
  EXPECT_EQ(read(R"({"text":"\"\\\/\b\f\n\r\t\u00e9\u20ac\ud83d\ude00"})"),
            "\"\\/\b\f\n\r\t\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(read(R"({"text":"a\u0000b"})"), std::string("a\0b", 3));
  EXPECT_EQ(read(R"({"te\u0078t":"x"})"), "x");
  EXPECT_EQ(read(R"({"te\"xt":"x"})", "te\"xt"), "x");
}

TEST_F(JsonFieldsTest, OfEqualKeysTheLastOneCounts) {
  EXPECT_EQ(read(R"({"text":"first","text":"last"})"), "last");
  EXPECT_EQ(read(R"({"text":"first","te\u0078t":"last"})"), "last");
  EXPECT_EQ(read(R"({"text":"first","text":null})"), "!null");
  EXPECT_EQ(read(R"({"a":{"b":"first"},"a":{"c":1}})", "a.b"), "!");
  EXPECT_EQ(read(R"({"a":{"b":"first"},"a":{"b":"last"}})", "a.b"), "last");
}

TEST_F(JsonFieldsTest, NestedKeys) {
  EXPECT_EQ(read(R"({"a":{"x":1,"b":{"c":"deep"}}})", "a.b.c"), "deep");
  EXPECT_EQ(read(R"({"a":"flat"})", "a.b"), "!");
  EXPECT_EQ(read(R"({"a.b":"dotted","a":{"b":"nested"}})", "a\\.b"), "dotted");
  EXPECT_EQ(read(R"({"a.b":"dotted","a":{"b":"nested"}})", "a.b"), "nested");
  EXPECT_THROW(split_json_path("a..b"), Error);
  EXPECT_THROW(split_json_path(""), Error);
  JsonFields fields({"a", "a.b", "c"}, BadText::reject);
  TextBuffer line;
  line.append(R"({"c":"z","a":{"b":"y"}})");
  ASSERT_FALSE(fields.read(line.view()));
  EXPECT_EQ(fields.values()[0].type, "object");
  EXPECT_EQ(fields.values()[1].text, "y");
  EXPECT_EQ(fields.values()[2].text, "z");
}

TEST_F(JsonFieldsTest, NamesWhatIsNotText) {
  for (const auto& [value, type] : std::vector<std::pair<std::string, std::string>>{
           {"null", "null"}, {"12.5", "number"}, {"true", "boolean"}, {"[\"a\"]", "array"}, {"{\"a\":1}", "object"}}) {
    EXPECT_EQ(read("{\"text\":" + value + "}"), "!" + type);
  }
}

TEST_F(JsonFieldsTest, RefusesWhatIsNoObject) {
  for (const char* line :
       {"", " ", "[1]", "\"text\"", "12", "null", "{", "{\"text\"", "{\"text\":", "{\"text\":\"cut", "{\"text\":\"a\"",
        "{\"text\":\"a\"} {\"text\":\"b\"}", "{\"text\":\"a\"}}", "{\"text\":\"a\"},", "{\"text\" \"a\"}",
        "{\"a\":1 \"text\":\"a\"}", "garbage", "{text:1}", "{\"text\":\"a\"} x"}) {
    EXPECT_EQ(read(line), "!not a JSON object") << line;
  }
}

TEST_F(JsonFieldsTest, RawControlCharactersAreAnError) {
  for (const char c : {'\0', '\1', '\t', '\x1f'}) {
    EXPECT_EQ(read("{\"text\":\"a" + std::string(1, c) + "b\"}"), "!raw control character in a string");
  }
  EXPECT_EQ(read("{\"text\":\"a\x7f"
                 "b\"}"),
            "a\x7f"
            "b");
  // Python's line splitter would cut at these.
  EXPECT_EQ(read("{\"text\":\"a\xE2\x80\xA8"
                 "b\xC2\x85"
                 "c\"}"),
            "a\xE2\x80\xA8"
            "b\xC2\x85"
            "c");
}

TEST_F(JsonFieldsTest, InvalidUtf8IsRejectedOrReplaced) {
  struct Case {
    std::string bytes;
    int replaced;  // characters U+FFFD, one for each maximal ill-formed subsequence
  };
  for (const auto& [bytes, replaced] : std::vector<Case>{{"\x80", 1},
                                                         {"\xC0\x80", 2},
                                                         {"\xE0\x80\x80", 3},
                                                         {"\xED\xA0\x80", 3},
                                                         {"\xF5", 1},
                                                         {"\xFF", 1},
                                                         {"\xC3", 1},
                                                         {"\xE2\x82", 1},
                                                         {"\xF0\x9F\x98", 1},
                                                         {"\xF4\x90\x80\x80", 4},
                                                         {"\xF0\x80\x80\x80", 4}}) {
    const std::string line = "{\"text\":\"a" + bytes + "b\"}";
    EXPECT_EQ(read(line), "!invalid UTF-8");
    std::string expected = "a";
    for (int i = 0; i < replaced; ++i) expected += kReplacement;
    EXPECT_EQ(read(line, "text", BadText::replace), expected + "b");
    EXPECT_EQ(replace_ill_formed_utf8(bytes).size(), 3u * static_cast<size_t>(replaced));
  }
  EXPECT_EQ(replace_ill_formed_utf8("\xF4\x8F\xBF\xBF ok \xC3\xA9"), "\xF4\x8F\xBF\xBF ok \xC3\xA9");
}

TEST_F(JsonFieldsTest, LoneSurrogatesAreRejectedOrReplaced) {
  const std::string r = kReplacement;
  for (const auto& [escaped, replaced] :
       std::vector<std::pair<std::string, std::string>>{{"\\ud800", r},
                                                        {"\\udc00", r},
                                                        {"\\ude00\\ud83d", r + r},
                                                        {"\\ud83dx", r + "x"},
                                                        {"\\ud83d\\n", r + "\n"},
                                                        {"\\ud83d\\u0041", r + "A"},
                                                        {"\\ud83d\\ud83d\\ude00", r + "\xF0\x9F\x98\x80"}}) {
    const std::string line = "{\"text\":\"<" + escaped + ">\"}";
    EXPECT_EQ(read(line), "!bad escape or lone surrogate") << line;
    EXPECT_EQ(read(line, "text", BadText::replace), "<" + replaced + ">") << line;
  }
  for (const char* escape : {"\\x", "\\u12", "\\u12g4", "\\u"}) {
    const std::string line = "{\"text\":\"" + std::string(escape) + "\"}";
    EXPECT_EQ(read(line), "!bad escape or lone surrogate") << line;
    EXPECT_EQ(read(line, "text", BadText::replace), "!bad escape or lone surrogate") << line;
  }
}

TEST_F(JsonFieldsTest, SizeAndDepthDoNotMatter) {
  const std::string huge(3'000'000, 'x');
  EXPECT_EQ(read("{\"other\":\"" + huge + "\",\"text\":\"a\"}"), "a");
  const std::string open(100'000, '[');
  const std::string close(100'000, ']');
  EXPECT_EQ(read("{\"other\":" + open + close + ",\"text\":\"a\"}"), "a");
}

TEST_F(JsonFieldsTest, AGoodLineAfterABadOne) {
  JsonFields fields({"text"}, BadText::reject);
  for (int i = 0; i < 3; ++i) {
    TextBuffer bad;
    bad.append("{\"text\":\"\x80\"}");
    EXPECT_TRUE(fields.read(bad.view()));
    TextBuffer good;
    good.append("{\"text\":\"good\"}");
    ASSERT_FALSE(fields.read(good.view()));
    EXPECT_EQ(fields.values()[0].text, "good");
  }
}

TEST_F(JsonFieldsTest, FiltersByField) {
  DocumentFields fields({"text"}, {parse_field_filter("meta.set=A,B\\,C"), parse_field_filter("n=3")}, BadText::reject);
  const auto verdict = [&fields](const std::string& line) {
    TextBuffer buffer;
    buffer.append(line);
    return fields.read(buffer.view());
  };
  EXPECT_EQ(verdict(R"({"text":"x","meta":{"set":"A"},"n":3})"), LineVerdict::document);
  EXPECT_EQ(verdict(R"({"n": 3 ,"meta":{"set":"B,C"},"text":"x"})"), LineVerdict::document);
  EXPECT_EQ(verdict(R"({"text":"x","meta":{"set":"B"},"n":3})"), LineVerdict::filtered);
  EXPECT_EQ(verdict(R"({"text":"x","meta":{"set":"A"},"n":4})"), LineVerdict::filtered);
  EXPECT_EQ(verdict(R"({"text":"x","n":3})"), LineVerdict::filtered);
  EXPECT_EQ(verdict(R"({"meta":{"set":"Z"}})"), LineVerdict::filtered);  // whatever else is wrong with it
  EXPECT_EQ(verdict(R"({"meta":{"set":"A"},"n":3})"), LineVerdict::bad);
  for (const char* text : {"", "=a", "a=", "a"}) EXPECT_THROW(parse_field_filter(text), Error) << text;
}

}  // namespace
}  // namespace megalith::data
