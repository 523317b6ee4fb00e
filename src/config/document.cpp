#include "config/document.h"

#include <algorithm>
#include <array>
#include <utility>

#include "config/scalar.h"
#include "config/yaml_tree.h"
#include "core/error.h"

namespace megalith::config {
namespace {

Value value_of(const YamlTree& tree) {
  Value value;
  value.origin = tree.origin;
  switch (tree.kind) {
    case YamlTree::Kind::null:
      break;
    case YamlTree::Kind::scalar:
      value.kind = Value::Kind::scalar;
      value.text = tree.text;
      break;
    case YamlTree::Kind::list:
      value.kind = Value::Kind::list;
      for (const YamlTree& item : tree.items) value.items.push_back(value_of(item));
      break;
    case YamlTree::Kind::map:
      if (!tree.members.empty()) value.kind = Value::Kind::other;
      break;
  }
  return value;
}

void flatten(const YamlTree& map, const std::string& prefix, std::vector<std::pair<std::string, Value>>& values) {
  for (const auto& [key, tree] : map.members) {
    if (tree.members.empty()) {
      values.emplace_back(own_name(prefix + key), value_of(tree));
    } else {
      flatten(tree, prefix + key + ".", values);
    }
  }
}

std::vector<std::pair<std::string, Value>> read_flat(const std::string& text, const std::string& name) {
  const YamlTree root = read_yaml_tree(text, name);
  std::vector<std::pair<std::string, Value>> values;
  if (root.kind == YamlTree::Kind::null) return values;
  if (root.kind != YamlTree::Kind::map) user_error("{}: expected `key: value` lines", root.origin);
  flatten(root, "", values);
  return values;
}

bool is_word(std::string_view path) {
  return !path.empty() && std::none_of(path.begin(), path.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\'';
  });
}

}  // namespace

void Document::read_yaml(const std::string& text, const std::string& name) {
  std::map<std::string, std::string> set_here;
  for (auto& [path, value] : read_flat(text, name)) {
    const auto [seen, is_new] = set_here.emplace(path, value.origin);
    if (!is_new) user_error("{}: `{}` is set twice, first at {}", value.origin, path, seen->second);
    set(path, std::move(value));
  }
}

void Document::read_override(const std::string& text) {
  const std::string origin = fmt::format("override '{}'", text);
  if (!is_utf8(text)) user_error("an override is not UTF-8 text");
  const size_t equals = text.find('=');
  if (equals == std::string::npos) user_error("{}: expected key=value, for example trainer.max_steps=100", origin);
  std::string_view path = trimmed(std::string_view(text).substr(0, equals));
  if (path.starts_with('~')) user_error("{}: keys cannot be deleted; give the default back with key=null", origin);
  for (int plus = 0; plus < 2 && path.starts_with('+'); ++plus) path.remove_prefix(1);
  if (!is_word(path)) user_error("{}: expected key=value, for example trainer.max_steps=100", origin);

  const std::string content(trimmed(std::string_view(text).substr(equals + 1)));
  if (content.empty()) user_error("{}: no value is given; {}=null gives the default back", origin, path);
  Value value;
  if (content[0] == '[' || content[0] == '{' || content[0] == '"' || content[0] == '\'') {
    value = value_of(read_yaml_line(content, origin));
  } else if (content != "~" && lower_case(content) != "null") {
    value.kind = Value::Kind::scalar;
    value.text = content;
  }
  value.origin = origin;
  set(own_name(path), std::move(value));
}

const Value* Document::find(const std::string& path) const {
  const auto found = values_.find(path);
  return found == values_.end() ? nullptr : &found->second;
}

// A later value of a section replaces the section, and a later section replaces a value.
void Document::set(const std::string& path, Value value) {
  const std::string inside = path + ".";
  auto next = values_.lower_bound(inside);
  while (next != values_.end() && next->first.starts_with(inside)) next = values_.erase(next);
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
    values_.erase(path.substr(0, dot));
  values_[path] = std::move(value);
}

std::string own_name(std::string_view path) {
  constexpr std::string_view kPrefix = "training.";
  if (path.starts_with(kPrefix)) path.remove_prefix(kPrefix.size());
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kDataOfSplit = {
      {{"model.data.data_prefix.train", "model.data.data_prefix"},
       {"model.data.data_prefix.validation", "model.data.validation_prefix"},
       {"model.data.data_prefix.test", "model.data.test_prefix"}}};
  for (const auto& [other, own] : kDataOfSplit) {
    if (path == other) return std::string(own);
  }
  return std::string(path);
}

std::string display(const Value& value) {
  std::string text;
  switch (value.kind) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::scalar:
      text = value.text;
      break;
    case Value::Kind::list:
      for (const Value& item : value.items) {
        text += (text.empty() ? "" : ", ") + display(item);
        if (text.size() > 200) break;
      }
      text = "[" + text + "]";
      break;
    case Value::Kind::other:
      return "{...}";
  }
  if (text.size() <= 80) return text;
  size_t cut = 77;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;  // not inside a character
  return text.substr(0, cut) + "...";
}

}  // namespace megalith::config
