#include "cli/config_options.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "config/validate.h"
#include "core/error.h"

namespace megalith::cli {

void ConfigOptions::add_to(CLI::App& verb) {
  verb.add_option("-c,--config", files, "a recipe (YAML); give -c again for another, which overrides the one before")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  verb.add_option("overrides", overrides, "key=value, for example trainer.max_steps=100");
}

namespace {
// Before YAML or a key is looked for in it.
void refuse_bare_recipe(const std::string& override) {
  const std::filesystem::path path = override;
  const bool is_recipe = path.extension() == ".yaml" || path.extension() == ".yml";
  if (is_recipe && override.find('=') == std::string::npos)
    user_error("'{}' is not key=value: give a recipe with -c, as in -c {}", override, override);
}
}  // namespace

config::Run ConfigOptions::load(config::LoadReport* report) const {
  for (const std::string& text : overrides) refuse_bare_recipe(text);
  const std::vector<std::filesystem::path> paths(files.begin(), files.end());
  config::Run run = config::load(paths, overrides, report);
  config::validate(run);
  return run;
}

}  // namespace megalith::cli
