#include "launch/profiles/profile_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "config/environment/variables.h"
#include "config/suggest.h"
#include "core/error.h"
#include "core/file.h"
#include "launch/profiles/set_option.h"

namespace megalith::launch {

namespace fs = std::filesystem;

namespace {

using config::YamlTree;
using Folders = std::vector<fs::path>;

bool is_file_name(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml");
}

fs::path find_profile(const std::string& name, const Folders& folders) {
  std::error_code error;
  if (is_file_name(name)) {
    if (!fs::is_regular_file(name, error)) user_error("there is no profile {}: no such file", name);
    return name;
  }
  for (const fs::path& folder : folders) {
    if (fs::path file = folder / (name + ".yaml"); fs::is_regular_file(file, error)) return file;
  }
  const std::vector<std::string> names = profile_names(folders);
  const auto nearest = config::nearest_name(name, names);
  if (names.empty()) {
    std::string places;
    for (const fs::path& folder : folders) places += (places.empty() ? "" : ", ") + folder.string();
    user_error("there is no profile '{}', since no profile is found in {}; give a file", name, places);
  }
  if (nearest) user_error("there is no profile '{}'; did you mean '{}'?", name, *nearest);
  user_error("there is no profile '{}'; there are {} (or give a file)", name, fmt::join(names, ", "));
}

// Takes `inherit` out of a tree.
std::optional<std::string> parent_of(YamlTree& tree) {
  const auto is_inherit = [](const auto& member) { return member.name == "inherit"; };
  const auto found = std::find_if(tree.members.begin(), tree.members.end(), is_inherit);
  if (found == tree.members.end()) return std::nullopt;
  const YamlTree parent = found->value;
  tree.members.erase(found);
  if (parent.kind != YamlTree::Kind::scalar || parent.text.empty())
    user_error("{}: `inherit` must be the name or file of another profile", parent.origin);
  return parent.text;
}

// A parent's file is looked for beside its child first.
std::string beside(const fs::path& child, const std::string& parent) {
  std::error_code error;
  const fs::path file = child.parent_path() / (is_file_name(parent) ? parent : parent + ".yaml");
  return fs::is_regular_file(file, error) ? file.string() : parent;
}

YamlTree read_with_parents(const std::string& name, const Folders& folders, std::set<fs::path>& seen) {
  const fs::path file = find_profile(name, folders);
  if (!seen.insert(fs::weakly_canonical(file)).second) user_error("the profile {} inherits itself", file.string());
  YamlTree tree = config::read_yaml_tree(read_text(file), file.filename().string());
  const auto parent = parent_of(tree);
  if (!parent) return tree;
  YamlTree whole = read_with_parents(beside(file, *parent), folders, seen);
  merge_into(whole, tree);
  return whole;
}

void require_kind(const Profile& profile) {
  if (profile.text("kind").empty())
    user_error("the profile {} does not say its `kind`: slurm, kubernetes or local", profile.name());
}

}  // namespace

Folders profile_folders(const config::Lookup& environment) {
  const config::Variables variables(environment);
  Folders folders;
  if (const auto config_home = variables.text("XDG_CONFIG_HOME")) {
    folders.push_back(fs::path(*config_home) / "megalith" / "clusters");
  } else if (const auto home = variables.text("HOME")) {
    folders.push_back(fs::path(*home) / ".config" / "megalith" / "clusters");
  }
  folders.emplace_back("recipes/clusters");
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return folders;
  folders.push_back(program.parent_path() / "../../recipes/clusters");              // build/cpu/megalith
  folders.push_back(program.parent_path() / "../share/megalith/recipes/clusters");  // bin/megalith
  return folders;
}

std::vector<std::string> profile_names(const Folders& folders) {
  std::set<std::string> names;
  for (const fs::path& folder : folders) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".yaml") names.insert(entry.path().stem().string());
    }
  }
  return {names.begin(), names.end()};
}

Profile load_profile(const std::string& name_or_file, const std::vector<std::string>& set, const Folders& folders) {
  std::set<fs::path> seen;
  YamlTree tree = read_with_parents(name_or_file, folders, seen);
  for (const std::string& text : set) apply_set(tree, text);
  Profile profile(fs::path(name_or_file).stem().string(), std::move(tree));
  require_kind(profile);
  return profile;
}

Profile default_profile(const std::string& name, const std::vector<std::string>& set) {
  YamlTree tree{.kind = YamlTree::Kind::map};
  for (const std::string& text : set) apply_set(tree, text);
  Profile profile(name, std::move(tree));
  require_kind(profile);
  return profile;
}

Profile parse_profile(const std::string& text, const std::string& name) {
  Profile profile(name, config::read_yaml_tree(text, name));
  require_kind(profile);
  return profile;
}

}  // namespace megalith::launch
