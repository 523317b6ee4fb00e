#include "cli/config_options.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "config/validate.h"

namespace megalith::cli {

void ConfigOptions::add_to(CLI::App& verb) {
  verb.add_option("-c,--config", files, "a recipe (YAML); a later one overrides an earlier one")
      ->allow_extra_args(false);
  verb.add_option("overrides", overrides, "key=value, for example trainer.max_steps=100");
}

config::Run ConfigOptions::load(config::LoadReport* report) const {
  const std::vector<std::filesystem::path> paths(files.begin(), files.end());
  config::Run run = config::load(paths, overrides, report);
  config::validate(run);
  return run;
}

}  // namespace megalith::cli
