#include "config/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <map>
#include <sstream>

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

class Reader {
 public:
  Reader(std::string name, bool one_line) : name_(std::move(name)), one_line_(one_line) {}

  YamlTree read(const std::string& text) { return tree_of(load(text), ""); }

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

  // `prefix`: the names that lead here, for messages.
  YamlTree tree_of(const YAML::Node& node, const std::string& prefix) {
    if (++nodes_ > kMaxNodes) user_error("{}: more than {} values", where(node), kMaxNodes);
    YamlTree tree;
    tree.origin = where(node);
    if (node.IsScalar()) {
      tree.kind = YamlTree::Kind::scalar;
      tree.text = node.Scalar();
      tree.quoted = node.Tag() == "!";
    } else if (node.IsSequence()) {
      const Depth depth(*this, node);
      tree.kind = YamlTree::Kind::list;
      for (const auto& item : node) tree.items.push_back(tree_of(item, prefix));
    } else if (node.IsMap()) {
      const Depth depth(*this, node);
      tree.kind = YamlTree::Kind::map;
      add_members(node, prefix, tree);
    }
    return tree;
  }

  void add_members(const YAML::Node& map, const std::string& prefix, YamlTree& tree) {
    std::map<std::string, int> first_line;
    for (const auto& entry : map) {
      if (!entry.first.IsScalar()) user_error("{}: a key must be a word", where(entry.first));
      const std::string key = entry.first.Scalar();
      if (key == "<<") user_error("{}: YAML merge keys (<<) are not supported; repeat the keys", where(entry.first));
      if (key.empty()) user_error("{}: a key is empty", where(entry.first));
      const auto [seen, is_new] = first_line.emplace(key, entry.first.Mark().line + 1);
      if (!is_new)
        user_error("{}: `{}{}` is set twice, first in line {}", where(entry.first), prefix, key, seen->second);
      tree.members.push_back({key, tree_of(entry.second, prefix + key + ".")});
      tree.members.back().value.origin = where(entry.first);
    }
  }

  // Aliases can make a tree contain itself.
  class Depth {
   public:
    Depth(Reader& reader, const YAML::Node& node) : reader_(reader) {
      if (reader.depth_ >= 100) user_error("{}: nested too deeply", reader.where(node));
      ++reader.depth_;
    }
    ~Depth() { --reader_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Reader& reader_;
  };

  std::string where(const YAML::Node& node) const { return place(node.Mark()); }

  std::string place(const YAML::Mark& mark) const {
    if (one_line_ || mark.is_null()) return name_;
    return fmt::format("{}:{}", name_, mark.line + 1);
  }

  std::string name_;
  bool one_line_;
  int depth_ = 0;
  int nodes_ = 0;
};

}  // namespace

YamlTree read_yaml_tree(const std::string& text, const std::string& name) {
  return Reader(name, false).read(text);
}

YamlTree read_yaml_line(const std::string& text, const std::string& name) {
  return Reader(name, true).read(text);
}

}  // namespace megalith::config
