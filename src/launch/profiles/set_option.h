#pragma once

#include <string>

#include "config/yaml_tree.h"

namespace megalith::launch {

// What is written later wins: maps are merged, everything else is replaced, null takes the value away.
void merge_into(config::YamlTree& tree, const config::YamlTree& later);

// `--set` as Helm reads it: a.b[0].c=v, several with commas between, {x,y} for a list, null to take a value away; a
// backslash keeps what follows from meaning anything. User error for what is none.
void apply_set(config::YamlTree& tree, const std::string& text);

}  // namespace megalith::launch
