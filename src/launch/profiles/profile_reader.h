#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/environment/environment.h"
#include "launch/profiles/profile.h"

namespace megalith::launch {

// Where profiles are looked for by their name: the user's own folder (megalith/clusters in XDG_CONFIG_HOME or
// ~/.config), recipes/clusters here, those of this program's source tree or installation.
std::vector<std::filesystem::path> profile_folders(const config::Lookup& environment = config::process_environment);

// The names of all profiles that can be found, sorted.
std::vector<std::string> profile_names(const std::vector<std::filesystem::path>& folders);

// A profile by its name or file, with all that it inherits (`inherit: NAME|FILE`) and what the `--set` options say on
// top. User error that says what is wrong with it, everything at once.
Profile load_profile(const std::string& name_or_file, const std::vector<std::string>& set,
                     const std::vector<std::filesystem::path>& folders = profile_folders());

// A profile that no file describes: what holds where nothing is said, and the `--set` options.
Profile default_profile(const std::string& name, const std::vector<std::string>& set);

// The profile of a text, as one that load_profile() answered prints itself; `name` stands for it in messages.
Profile parse_profile(const std::string& text, const std::string& name);

}  // namespace megalith::launch
