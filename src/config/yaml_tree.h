#pragma once

#include <string>
#include <vector>

namespace megalith::config {

// YAML as data: maps, lists and texts, each with the place where it was written. What makes YAML more than data (merge
// keys, several documents, aliases that grow without end) is refused.
struct YamlTree {
  struct Member;
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string text;     // of a scalar
  bool quoted = false;  // a scalar in quotes: a text, whatever it looks like
  std::vector<YamlTree> items;
  std::vector<Member> members;  // in the order of the text; no name twice
  std::string origin;           // "gpt3.yaml:12"; of a member that of its name
};

struct YamlTree::Member {
  std::string name;
  YamlTree value;
};

// The tree of one text; `name` stands for it in messages. User error, with the place, for what is no such tree.
YamlTree read_yaml_tree(const std::string& text, const std::string& name);
// The same of one line, whose places have no line: `name` alone.
YamlTree read_yaml_line(const std::string& text, const std::string& name);

}  // namespace megalith::config
