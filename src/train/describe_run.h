#pragma once

#include <string>

#include "config/run_config.h"

namespace megalith::train {

// What somebody who starts a run wants to see of its config, in a dozen lines; hparams.yaml and --print-config have
// all.
std::string describe_run(const config::Run& run, int64_t vocabulary);

}  // namespace megalith::train
