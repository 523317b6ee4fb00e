#include "config/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "config/scalar.h"
#include "core/error.h"

namespace megalith::config {
namespace {

constexpr size_t kMaxText = size_t{1} << 20;
constexpr int kMaxNodes = 100000;  // an alias may be used often: a small file can describe a huge tree

// YAML::Load reads the first document and is silent about more; YAML::LoadAll can loop forever on bad text.
class NullHandler : public YAML::EventHandler {
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// A recipe is data: what makes it more than that is refused.
class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  std::vector<std::pair<std::string, Value>> read(const std::string& text) {
    const YAML::Node root = load(text);
    std::vector<std::pair<std::string, Value>> values;
    if (root.IsNull()) return values;
    if (!root.IsMap()) user_error("{}: expected `key: value` lines", where(root));
    flatten(root, "", values);
    return values;
  }

  Value read_flow(const std::string& text) { return value_of(load(text)); }

  bool one_line = false;  // an override: its place has no line

 private:
  YAML::Node load(const std::string& text) const {
    if (text.size() > kMaxText) user_error("{}: {} bytes are too many for a recipe", name_, text.size());
    if (!is_utf8(text)) user_error("{}: not UTF-8 text", name_);
    if (text.find('\0') != std::string::npos) user_error("{}: holds a zero byte", name_);
    try {
      std::istringstream stream(text);
      YAML::Parser parser(stream);
      NullHandler nobody;
      const bool two = parser.HandleNextDocument(nobody) && parser.HandleNextDocument(nobody);
      if (two) user_error("{}: holds more than one YAML document", name_);
      return YAML::Load(text);
    } catch (const YAML::Exception& problem) {
      user_error("{}: not YAML: {}", place(problem.mark), problem.msg);
    }
  }

  void flatten(const YAML::Node& map, const std::string& prefix, std::vector<std::pair<std::string, Value>>& values) {
    count(map);
    std::map<std::string, int> first_line;
    for (const auto& entry : map) {
      if (!entry.first.IsScalar()) user_error("{}: a key must be a word", where(entry.first));
      const std::string key = entry.first.Scalar();
      if (key == "<<") user_error("{}: YAML merge keys (<<) are not supported; repeat the keys", where(entry.first));
      if (key.empty()) user_error("{}: a key is empty", where(entry.first));
      const auto [seen, is_new] = first_line.emplace(key, entry.first.Mark().line + 1);
      if (!is_new)
        user_error("{}: `{}{}` is set twice, first in line {}", where(entry.first), prefix, key, seen->second);
      if (entry.second.IsMap() && entry.second.size() > 0) {
        Depth depth(*this, entry.second);
        flatten(entry.second, prefix + key + ".", values);
      } else {
        values.emplace_back(own_name(prefix + key), value_of(entry.second));
        values.back().second.origin = where(entry.first);
      }
    }
  }

  Value value_of(const YAML::Node& node) {
    count(node);
    Value value;
    value.origin = where(node);
    if (node.IsScalar()) {
      value.kind = Value::Kind::scalar;
      value.text = node.Scalar();
    } else if (node.IsSequence()) {
      Depth depth(*this, node);
      value.kind = Value::Kind::list;
      for (const auto& item : node) value.items.push_back(value_of(item));
    } else if (node.IsMap() && node.size() > 0) {
      value.kind = Value::Kind::other;
    }
    return value;
  }

  // Aliases can make a tree contain itself.
  class Depth {
   public:
    Depth(Reader& reader, const YAML::Node& node) : reader_(reader) {
      if (reader.depth_ >= 100) user_error("{}: nested too deeply", reader.where(node));
      ++reader.depth_;
    }
    ~Depth() { --reader_.depth_; }

   private:
    Reader& reader_;
  };

  void count(const YAML::Node& node) {
    if (++nodes_ > kMaxNodes) user_error("{}: more than {} values", where(node), kMaxNodes);
  }

  std::string where(const YAML::Node& node) const { return place(node.Mark()); }

  std::string place(const YAML::Mark& mark) const {
    if (one_line || mark.is_null()) return name_;
    return fmt::format("{}:{}", name_, mark.line + 1);
  }

  std::string name_;
  int depth_ = 0;
  int nodes_ = 0;
};

bool is_word(std::string_view path) {
  return !path.empty() && std::none_of(path.begin(), path.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\'';
  });
}

}  // namespace

void Document::read_yaml(const std::string& text, const std::string& name) {
  std::map<std::string, std::string> set_here;
  for (auto& [path, value] : Reader(name).read(text)) {
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
  Value value;
  if (!content.empty() && (content[0] == '[' || content[0] == '{' || content[0] == '"' || content[0] == '\'')) {
    Reader reader(origin);
    reader.one_line = true;
    value = reader.read_flow(content);
  } else if (!content.empty() && content != "~" && lower_case(content) != "null") {
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
