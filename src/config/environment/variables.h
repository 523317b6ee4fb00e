#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/environment/environment.h"

namespace megalith::config {

// Environment variables, read with care. An empty one counts as missing: scripts export variables that they have no
// value for.
class Variables {
 public:
  // `lookup` must outlive it.
  explicit Variables(const Lookup& lookup) : lookup_(lookup) {}

  std::optional<std::string> text(const std::string& name) const;
  bool has(const std::string& name) const { return text(name).has_value(); }
  // User error, with the variable's name, for what is no whole number from `least` to `most`.
  std::optional<int64_t> number(const std::string& name, int64_t least, int64_t most) const;
  std::optional<int64_t> count(const std::string& name) const;

  // No step has begun: there is one process, whatever SLURM_NTASKS says.
  bool in_slurm_batch_script() const { return has("SLURM_JOB_ID") && !has("SLURM_STEP_ID"); }

 private:
  const Lookup& lookup_;
};

}  // namespace megalith::config
