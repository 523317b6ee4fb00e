#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "config/load.h"

namespace megalith::cli {

// `-c FILE ... key=value ...`, as the verbs that take a config share it.
struct ConfigOptions {
  std::vector<std::string> files;
  std::vector<std::string> overrides;

  void add_to(CLI::App& verb);
  // The effective, validated config.
  config::Run load(config::LoadReport* report = nullptr) const;
};

}  // namespace megalith::cli
