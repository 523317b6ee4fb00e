#pragma once

#include "config/run_config.h"

namespace megalith::config {

// Makes `run` the effective config: every default that follows from another key is filled in. Throws one user error
// that lists all that cannot work together and what to do about it; what a key takes by itself is known when it is
// loaded.
void validate(Run& run);

}  // namespace megalith::config
