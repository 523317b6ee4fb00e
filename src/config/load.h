#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"

namespace megalith::config {

// What load() did with keys that Megalith knows but does not implement.
struct LoadReport {
  struct Ignored {
    std::string key;
    std::string value;
    std::string origin;
    std::string reason;
  };
  std::vector<Ignored> ignored;
  std::vector<std::string> notes;  // on the texts themselves
};

// Of the texts that to_yaml() writes, under the key `config_version`. Since 2 they tell what was derived from what was
// set.
constexpr std::string_view kVersionKey = "config_version";
constexpr int64_t kConfigVersion = 2;

// One line per note and per reason, for the start of a run; empty when there is nothing to say.
std::string describe(const LoadReport& report);

struct Source {
  std::string name;  // for messages
  std::string text;  // YAML
};

// The config that the YAML texts and then the overrides (`key=value`) describe; what comes later wins, null gives the
// default back. Every problem is listed in one user error, with its place, key, value and what was wanted.
// The result is as written: validate() completes and checks it.
Run load(std::span<const Source> sources, const std::vector<std::string>& overrides, LoadReport* report = nullptr);

Run load(const std::vector<std::filesystem::path>& files, const std::vector<std::string>& overrides,
         LoadReport* report = nullptr);

}  // namespace megalith::config
