#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/yaml_tree.h"
#include "launch/profiles/profile_keys.h"

namespace megalith::launch {

// What the program sees of the cluster's storage.
struct Mount {
  std::string name;  // of the volume, on Kubernetes
  std::string source;
  std::string claim;
  std::string bucket;
  std::string mount_options;
  std::string target;
  bool read_only = false;
  std::string seen_at;  // where this machine sees it; empty: nowhere
};

// A cluster, as its profile and those that it inherits describe it. Every value has been checked.
class Profile {
 public:
  using Map = std::vector<std::pair<std::string, std::string>>;

  Profile() = default;
  // User error with every key that does not exist, or whose value is not of its kind.
  Profile(std::string name, config::YamlTree tree);

  const std::string& name() const { return name_; }

  // Values by their path (profile_keys.h), or what holds where nothing is said.
  std::string text(std::string_view path) const;
  int64_t number(std::string_view path) const;
  bool flag(std::string_view path) const;
  double seconds(std::string_view path) const;
  std::vector<std::string> texts(std::string_view path) const;
  Map map(std::string_view path) const;
  config::YamlTree tree(std::string_view path) const;
  std::vector<Mount> mounts() const;

  // Every key with its value and, in a comment, where it came from. It can be read back as a profile.
  std::string to_yaml() const;

 private:
  std::string name_;
  config::YamlTree tree_;
};

// A member by its dotted path; null where there is none.
const config::YamlTree* find_in(const config::YamlTree& tree, std::string_view path);

}  // namespace megalith::launch
