#pragma once

#include "config/run_config.h"

namespace megalith::config {

// Makes `run` the effective config: one spelling per choice (bf16-mixed -> bf16, fast-swiglu -> swiglu), every default
// that follows from another key filled in. Throws one user error that lists all that cannot work and what to do about
// it.
void validate(Run& run);

}  // namespace megalith::config
