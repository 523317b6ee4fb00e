#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::launch {

enum class ProfileType {
  text,
  choice,    // one of ProfileKey::choices
  number,    // whole, 0 or more
  flag,      // true or false
  duration,  // "600", "10m", "2h", ... (config::parse_time_interval)
  texts,     // a list of texts
  map,       // names and texts, whatever the names are
  maps,      // a list of maps whose keys are keys of their own: "mounts[].source"
  tree,      // as Kubernetes knows it, passed on
};

struct ProfileKey {
  std::string_view path;  // "slurm.partition", "mounts[].source"
  ProfileType type;
  std::string_view otherwise;  // what holds where nothing is said, as YAML; empty: nothing
  std::string_view help;
  std::string_view choices{};  // of a choice: "node|gpu"
};

// Every key of a profile, once, in the order of printing. Checks, defaults, printing and suggestions read this list.
const std::vector<ProfileKey>& profile_keys();
const ProfileKey* find_profile_key(std::string_view path);
// "a whole number", "true or false", ...
std::string type_name(const ProfileKey& key);
// The known key that the writer of `path` most likely meant.
std::optional<std::string> nearest_profile_key(std::string_view path);

}  // namespace megalith::launch
