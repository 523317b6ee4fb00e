#include "train/run_identity.h"

#include <fmt/format.h>

#include <random>
#include <sstream>

#include "core/file.h"

namespace megalith::train {

namespace {
std::string new_run_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}
}  // namespace

std::string RunIdentity::to_text() const {
  return fmt::format("{} {} {}", id, generation, resumes);
}

RunIdentity RunIdentity::from_text(const std::string& text) {
  RunIdentity identity;
  std::istringstream(text) >> identity.id >> identity.generation >> std::boolalpha >> identity.resumes;
  return identity;
}

RunIdentity count_start(const std::filesystem::path& file, bool resumes) {
  RunIdentity identity;
  if (resumes && std::filesystem::exists(file))
    std::istringstream(read_text(file)) >> identity.id >> identity.generation;
  if (identity.id.empty()) identity.id = new_run_id();
  identity.resumes = resumes;
  replace_file(file, fmt::format("{} {}\n", identity.id, identity.generation + 1));
  return identity;
}

}  // namespace megalith::train
