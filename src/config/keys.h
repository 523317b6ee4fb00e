#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/run_config.h"

namespace megalith::config {

using Field = std::variant<bool*, int64_t*, double*, std::string*, std::vector<int64_t>*, std::vector<double>*,
                           std::vector<std::string>*>;

struct Key {
  std::string_view path;  // NeMo's name: model.optim.sched.warmup_steps
  Field field;
  std::string_view help;
};

// Every key that Megalith implements, once, in the order of printing. Parsing, type checks, printing, help and
// suggestions all read this list; a field of Run that is not in it cannot be set.
std::vector<Key> keys_of(Run& run);

// "a whole number", "true or false", ...
std::string_view type_name(const Field& field);

// The value as YAML, one line; null for an empty string, which stands for "not set".
std::string value_text(const Field& field);

}  // namespace megalith::config
