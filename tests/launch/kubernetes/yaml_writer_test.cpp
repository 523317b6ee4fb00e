#include "launch/kubernetes/yaml_writer.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>
#include <random>

#include "expect_error.h"

namespace megalith::launch {
namespace {

using Json = nlohmann::ordered_json;

TEST(YamlWriter, WritesWhatPeopleWrite) {
  const Json value = {{"name", "gpt3"},
                      {"count", 3},
                      {"on", true},
                      {"looks", Json::array({"true", "3", "null", "", "yes"})},
                      {"empty", {{"map", Json::object()}, {"list", Json::array()}}},
                      {"list", Json::array({{{"a", 1}, {"b", {{"c", "x y"}}}}, {{"d", Json::array({1, 2})}}})},
                      {"script", "#!/bin/bash\n\n  echo \"$x\"\n"},
                      {"unended", "a\nb"}};
  EXPECT_EQ(to_yaml(value), R"(name: gpt3
count: 3
"on": true
looks:
- "true"
- "3"
- "null"
- ""
- "yes"
empty:
  map: {}
  list: []
list:
- a: 1
  b:
    c: "x y"
- d:
  - 1
  - 2
script: |
  #!/bin/bash

    echo "$x"
unended: |-
  a
  b
)");
}

TEST(YamlWriter, AnyTextComesBack) {
  const std::vector<std::string> pieces = {" ",      "\n", "\t",   "\r",         "\"", "'",    "\\",   "$",
                                           ":",      "#",  "- ",   "|",          "~",  "\x01", "\x7f", "\u0085",
                                           "\u2028", "ü",  "字",   "\U0001f600", "a",  "1",    "[",    "{{ x }}",
                                           "\ufeff", "%",  "null", "yes",        "&",  "\n\n"};
  std::mt19937 random(20);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (unsigned left = 1 + random() % 10; left > 0; --left) text += pieces[random() % pieces.size()];
    const std::string yaml = to_yaml({{"first", {{"text", text}, {"more", 1}}}, {"list", Json::array({text})}});
    const YAML::Node read = YAML::Load(yaml);
    EXPECT_EQ(read["first"]["text"].as<std::string>(), text) << yaml;
    EXPECT_EQ(read["first"]["more"].as<int>(), 1) << yaml;
    EXPECT_EQ(read["list"][0].as<std::string>(), text) << yaml;
  }
}

TEST(YamlWriter, RefusesWhatIsNoText) {
  expect_parts(user_error_of([] { to_yaml({{"a", "\xff"}}); }), {"not UTF-8"});
}

}  // namespace
}  // namespace megalith::launch
