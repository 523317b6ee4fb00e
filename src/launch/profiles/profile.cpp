#include "launch/profiles/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "config/derived.h"
#include "config/problems.h"
#include "config/scalar.h"
#include "core/error.h"

namespace megalith::launch {

namespace {

using config::YamlTree;

bool is_text(const YamlTree& tree) {
  return tree.kind == YamlTree::Kind::scalar;
}

bool is_choice(const ProfileKey& key, const std::string& text) {
  const std::string all = fmt::format("|{}|", key.choices);
  return text.empty() ? key.otherwise.empty() : all.find("|" + text + "|") != std::string::npos;
}

bool is_duration(const std::string& text) {
  try {
    config::parse_time_interval(text);
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool fits(const ProfileKey& key, const YamlTree& value) {
  const auto all_texts = [](const std::vector<YamlTree>& items) {
    return std::all_of(items.begin(), items.end(), is_text);
  };
  switch (key.type) {
    case ProfileType::text:
      return is_text(value);
    case ProfileType::choice:
      return is_text(value) && is_choice(key, value.text);
    case ProfileType::number:
      return is_text(value) && config::read_int(value.text).value_or(-1) >= 0;
    case ProfileType::flag:
      return is_text(value) && config::read_bool(value.text);
    case ProfileType::duration:
      return is_text(value) && is_duration(value.text);
    case ProfileType::texts:
      return value.kind == YamlTree::Kind::list && all_texts(value.items);
    case ProfileType::map:
      return value.kind == YamlTree::Kind::map && std::all_of(value.members.begin(), value.members.end(),
                                                              [](const auto& member) { return is_text(member.value); });
    case ProfileType::maps:
    case ProfileType::tree:
      return value.kind == YamlTree::Kind::list;
  }
  return false;
}

class Checker {
 public:
  explicit Checker(const std::string& name) : name_(name) {}

  void check(const YamlTree& section, const std::string& prefix) {
    for (const auto& [name, value] : section.members) check_member(prefix + name, value);
  }

  void finish() const { problems_.throw_if_any(fmt::format("the profile {}", name_).c_str()); }

 private:
  void check_member(const std::string& path, const YamlTree& value) {
    if (value.kind == YamlTree::Kind::null) return;  // gives the default back
    const ProfileKey* key = find_profile_key(path);
    if (key == nullptr) return check_section(path, value);
    if (!fits(*key, value)) return problems_.add("{}: `{}` must be {}", value.origin, path, type_name(*key));
    if (key->type != ProfileType::maps) return;
    for (const YamlTree& item : value.items) {
      if (item.kind != YamlTree::Kind::map) return problems_.add("{}: `{}` must be a list of maps", item.origin, path);
      check(item, path + "[].");
    }
  }

  void check_section(const std::string& path, const YamlTree& value) {
    const bool is_section = std::any_of(profile_keys().begin(), profile_keys().end(),
                                        [&](const ProfileKey& key) { return key.path.starts_with(path + "."); });
    if (is_section && value.kind == YamlTree::Kind::map) return check(value, path + ".");
    if (is_section) return problems_.add("{}: `{}` is a section, not a value", value.origin, path);
    const auto nearest = nearest_profile_key(path);
    problems_.add(
        "{}: there is no key `{}`{}", value.origin, path,
        nearest ? fmt::format("; did you mean `{}`?", *nearest) : "; `megalith launch profile NAME` lists all keys");
  }

  std::string name_;
  config::Problems problems_;
};

// Of a variable, as POSIX has it.
bool is_variable_name(const std::string& name) {
  const auto is_word = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  return !name.empty() && is_word(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return is_word(c) || (c >= '0' && c <= '9'); });
}

void check_environment(const Profile& profile) {
  for (const auto& [name, value] : profile.map("environment")) {
    if (!is_variable_name(name)) user_error("`environment.{}`: not the name of a variable", name);
    if (name == "MEGALITH_STORE_SECRET")
      user_error("`environment.{}`: a secret does not belong into a profile; every launch makes its own file", name);
    if (value.find('\0') != std::string::npos) user_error("`environment.{}` holds a zero byte", name);
  }
}

std::string scalar_text(const YamlTree& value) {
  const bool is_plain = !value.quoted && (config::read_bool(value.text) || config::read_double(value.text));
  return is_plain ? value.text : config::write_string(value.text);
}

std::string comment_of(const YamlTree& value) {
  std::string origin = value.origin;
  std::replace_if(
      origin.begin(), origin.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, ' ');
  return origin.empty() ? "" : fmt::format("  # {}", origin);
}

void write_value(std::string& text, const YamlTree& value, size_t indent);

void write_member(std::string& text, const std::string& name, const YamlTree& value, size_t indent) {
  text += config::write_string(name) + ":";
  write_value(text, value, indent);
}

// A map begins on the line of its dash.
void write_item(std::string& text, const YamlTree& item, size_t indent) {
  text.append(indent, ' ').append("-");
  if (item.members.empty()) return write_value(text, item, indent + 2);
  for (size_t i = 0; i < item.members.size(); ++i) {
    text.append(i == 0 ? 1 : indent + 2, ' ');
    write_member(text, item.members[i].name, item.members[i].value, indent + 4);
  }
}

// What follows a name or a dash, with the end of its line.
void write_value(std::string& text, const YamlTree& value, size_t indent) {
  const std::string spaces(indent, ' ');
  switch (value.kind) {
    case YamlTree::Kind::null:
      text += fmt::format(" null{}\n", comment_of(value));
      return;
    case YamlTree::Kind::scalar:
      text += fmt::format(" {}{}\n", scalar_text(value), comment_of(value));
      return;
    case YamlTree::Kind::list:
      text += fmt::format("{}{}\n", value.items.empty() ? " []" : "", comment_of(value));
      for (const YamlTree& item : value.items) write_item(text, item, indent);
      return;
    case YamlTree::Kind::map:
      text += fmt::format("{}{}\n", value.members.empty() ? " {}" : "", comment_of(value));
      for (const auto& [name, member] : value.members) {
        text += spaces;
        write_member(text, name, member, indent + 2);
      }
  }
}

YamlTree default_of(const ProfileKey& key) {
  YamlTree value = config::read_yaml_line(key.otherwise.empty() ? "\"\"" : std::string(key.otherwise), "default");
  if (value.kind == YamlTree::Kind::null) value.kind = YamlTree::Kind::scalar;
  return value;
}

}  // namespace

const YamlTree* find_in(const YamlTree& tree, std::string_view path) {
  const std::string_view name = path.substr(0, path.find('.'));
  for (const auto& [member, value] : tree.members) {
    if (member != name) continue;
    return name.size() == path.size() ? &value : find_in(value, path.substr(name.size() + 1));
  }
  return nullptr;
}

Profile::Profile(std::string name, YamlTree tree) : name_(std::move(name)), tree_(std::move(tree)) {
  if (tree_.kind != YamlTree::Kind::map && tree_.kind != YamlTree::Kind::null)
    user_error("{}: expected `key: value` lines", tree_.origin);
  Checker checker(name_);
  checker.check(tree_, "");
  checker.finish();
  check_environment(*this);
}

YamlTree Profile::tree(std::string_view path) const {
  const YamlTree* value = find_in(tree_, path);
  if (value != nullptr && value->kind != YamlTree::Kind::null) return *value;
  const ProfileKey* key = find_profile_key(path);
  MEGALITH_CHECK(key != nullptr, "no profile key {}", path);
  return default_of(*key);
}

std::string Profile::text(std::string_view path) const {
  return tree(path).text;
}

int64_t Profile::number(std::string_view path) const {
  return config::read_int(text(path)).value_or(0);
}

bool Profile::flag(std::string_view path) const {
  return config::read_bool(text(path)).value_or(false);
}

double Profile::seconds(std::string_view path) const {
  return config::parse_time_interval(text(path));
}

std::vector<std::string> Profile::texts(std::string_view path) const {
  std::vector<std::string> texts;
  for (const YamlTree& item : tree(path).items) texts.push_back(item.text);
  return texts;
}

Profile::Map Profile::map(std::string_view path) const {
  Map map;
  for (const auto& [name, value] : tree(path).members) map.emplace_back(name, value.text);
  return map;
}

std::vector<Mount> Profile::mounts() const {
  std::vector<Mount> mounts;
  for (const YamlTree& item : tree("mounts").items) {
    const auto text = [&](const char* name) {
      const YamlTree* value = find_in(item, name);
      return value == nullptr ? std::string() : value->text;
    };
    Mount mount{.name = text("name"),
                .source = text("source"),
                .claim = text("claim"),
                .bucket = text("bucket"),
                .mount_options = text("mount_options"),
                .target = text("target"),
                .read_only = config::read_bool(text("read_only")).value_or(false),
                .seen_at = text("seen_at")};
    if (mount.target.empty()) mount.target = mount.source;
    std::error_code error;
    // A path of a Kubernetes node says nothing about this machine.
    const bool is_shared = this->text("kind") != "kubernetes";
    if (mount.seen_at.empty() && is_shared && std::filesystem::exists(mount.source, error))
      mount.seen_at = mount.source;
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::string Profile::to_yaml() const {
  std::string text;
  std::vector<std::string> open;
  for (const ProfileKey& key : profile_keys()) {
    if (key.path.find('[') != std::string_view::npos) continue;
    std::vector<std::string> words;
    for (std::string_view rest = key.path; !rest.empty();) {
      words.emplace_back(rest.substr(0, rest.find('.')));
      rest.remove_prefix(std::min(rest.size(), words.back().size() + 1));
    }
    const size_t sections = words.size() - 1;
    for (size_t i = 0; i < sections; ++i) {
      const bool is_open = i < open.size() && std::equal(words.begin(), words.begin() + i + 1, open.begin());
      if (!is_open) text += std::string(2 * i, ' ') + words[i] + ":\n";
    }
    text += std::string(2 * sections, ' ');
    write_member(text, words.back(), tree(key.path), 2 * words.size());
    open.assign(words.begin(), words.end() - 1);
  }
  return text;
}

}  // namespace megalith::launch
