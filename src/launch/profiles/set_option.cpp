#include "launch/profiles/set_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "config/scalar.h"
#include "core/error.h"

namespace megalith::launch {

namespace {

using config::YamlTree;

constexpr size_t kLongestList = 1000;

YamlTree& member_of(YamlTree& tree, const std::string& name, const std::string& origin) {
  if (tree.kind != YamlTree::Kind::map) tree = {.kind = YamlTree::Kind::map, .origin = origin};
  for (auto& [member, value] : tree.members) {
    if (member == name) return value;
  }
  tree.members.push_back({name, YamlTree{.origin = origin}});
  return tree.members.back().value;
}

class SetReader {
 public:
  explicit SetReader(const std::string& text) : text_(text), origin_("--set " + text) {}

  void apply(YamlTree& tree) {
    if (!config::is_utf8(text_)) user_error("--set: not UTF-8 text");
    if (text_.empty()) refuse();
    while (at_ < text_.size()) {
      YamlTree& place = find(tree);
      place = value();
      if (at_ < text_.size()) ++at_;  // the comma
    }
  }

 private:
  [[noreturn]] void refuse() const {
    user_error("{}: expected KEY=VALUE, for example --set slurm.partition=gpu or --set mounts[0].source=/data",
               origin_);
  }

  // Up to one of `ends`, which stays.
  std::string word(std::string_view ends) {
    std::string found;
    for (; at_ < text_.size() && ends.find(text_[at_]) == std::string_view::npos; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      found += text_[at_];
    }
    return found;
  }

  YamlTree& find(YamlTree& tree) {
    YamlTree* place = &tree;
    for (bool more = true; more;) {
      const std::string name = word(".[=,");
      if (name.empty() || at_ == text_.size() || text_[at_] == ',') refuse();
      place = &member_of(*place, name, origin_);
      while (at_ < text_.size() && text_[at_] == '[') place = &item_of(*place);
      if (at_ == text_.size()) refuse();
      more = text_[at_] == '.';
      if (!more && text_[at_] != '=') refuse();
      ++at_;
    }
    return *place;
  }

  YamlTree& item_of(YamlTree& tree) {
    ++at_;
    const auto index = config::read_int(word("]"));
    if (!index || *index < 0 || at_ == text_.size()) refuse();
    if (static_cast<size_t>(*index) >= kLongestList) user_error("{}: [{}] is too far", origin_, *index);
    ++at_;
    if (tree.kind != YamlTree::Kind::list) tree = {.kind = YamlTree::Kind::list, .origin = origin_};
    if (tree.items.size() <= static_cast<size_t>(*index)) tree.items.resize(static_cast<size_t>(*index) + 1);
    return tree.items[static_cast<size_t>(*index)];
  }

  YamlTree value() {
    if (at_ < text_.size() && text_[at_] == '{') return list();
    const bool is_null = text_.compare(at_, 4, "null") == 0 && (at_ + 4 == text_.size() || text_[at_ + 4] == ',');
    const std::string found = word(",");
    if (is_null) return {.origin = origin_};
    return scalar(found);
  }

  YamlTree scalar(std::string text) const {
    return {.kind = YamlTree::Kind::scalar, .text = std::move(text), .origin = origin_};
  }

  YamlTree list() {
    YamlTree found{.kind = YamlTree::Kind::list, .origin = origin_};
    ++at_;
    while (at_ < text_.size() && text_[at_] != '}') {
      found.items.push_back(scalar(word(",}")));
      if (at_ < text_.size() && text_[at_] == ',') ++at_;
    }
    if (at_ == text_.size()) user_error("{}: the list has no end: expected a closing brace", origin_);
    ++at_;
    if (at_ < text_.size() && text_[at_] != ',') refuse();
    return found;
  }

  const std::string& text_;
  std::string origin_;
  size_t at_ = 0;
};

}  // namespace

void merge_into(YamlTree& tree, const YamlTree& later) {
  if (tree.kind != YamlTree::Kind::map || later.kind != YamlTree::Kind::map) {
    tree = later;
    return;
  }
  for (const auto& [name, value] : later.members) {
    const auto same = [&name = name](const auto& member) { return member.name == name; };
    const auto found = std::find_if(tree.members.begin(), tree.members.end(), same);
    if (found == tree.members.end()) {
      tree.members.push_back({name, value});
    } else {
      merge_into(found->value, value);
    }
  }
}

void apply_set(YamlTree& tree, const std::string& text) {
  SetReader(text).apply(tree);
}

}  // namespace megalith::launch
