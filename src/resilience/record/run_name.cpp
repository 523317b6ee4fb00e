#include "resilience/record/run_name.h"

#include "config/fleet_environment.h"
#include "core/error.h"
#include "core/run_folders.h"
#include "resilience/record/control_directory.h"

namespace megalith::resilience {

namespace {
constexpr const char* kFile = "run";
}

std::optional<std::string> run_name(const std::filesystem::path& run_directory) {
  if (!std::filesystem::is_directory(run_directory / kControlFolder)) return std::nullopt;
  const DiskControlDirectory control(run_directory);
  std::optional<std::string> text = control.read(kFile);
  if (!text || !text->ends_with('\n')) return std::nullopt;
  text->pop_back();
  if (!config::is_node_name(*text)) data_error("{} holds no name of a run", control.path_of(kFile));
  return text;
}

void write_run_name(const std::filesystem::path& run_directory, const std::string& run) {
  DiskControlDirectory control(run_directory);
  if (control.create(kFile, run + '\n')) return;
  if (const std::optional<std::string> found = run_name(run_directory); found != run) {
    user_error("{} says that the run is '{}', not '{}': it was copied from another run, or {} was lost; remove {}",
               control.path_of(kFile), found.value_or(""), run, ".megalith.starts",
               (run_directory / kControlFolder).string());
  }
}

}  // namespace megalith::resilience
