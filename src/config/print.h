#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "config/run_config.h"

namespace megalith::config {

// Every key with its value as nested YAML, in a stable order: hparams.yaml. Loading it gives the same config back.
std::string to_yaml(const Run& run);

// The model's keys as NeMo's DLLogger PARAMETER record has them, `cfg/optim/sched/name` and so on, and `cfg/precision`.
std::vector<std::pair<std::string, nlohmann::ordered_json>> flatten(const Run& run);

// For --help-config: every key with its type, default and meaning, then the keys that are ignored and those refused.
std::string describe_keys();

}  // namespace megalith::config
