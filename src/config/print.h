#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "config/run_config.h"

namespace megalith::config {

// Every key with its value as nested YAML, in a stable order: hparams.yaml. What validate() derived stands in a comment
// behind what was written, `seq_length: 0  # 128`, so that loading the text and validate() give the same config back,
// and a derived value follows where an override changes what it came from.
std::string to_yaml(const Run& run);

// What followed from other keys in the config that such a text holds, by key. Empty where it cannot be read.
std::map<std::string, std::string> derived_values(const std::string& yaml);
// The same of the keys alone that differ from their defaults: a recipe.
std::string changes_to_yaml(const Run& run);

// The model's keys as NeMo's DLLogger PARAMETER record has them, `cfg/optim/sched/name` and so on, and `cfg/precision`.
std::vector<std::pair<std::string, nlohmann::ordered_json>> flatten(const Run& run);

// For --help-config: every key with its type, default and meaning, then the keys that are ignored and those refused.
std::string describe_keys();

}  // namespace megalith::config
