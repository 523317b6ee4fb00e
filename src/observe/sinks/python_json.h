#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace megalith::observe {

// As Python's repr(): the shortest digits that read back to the same number; 46.0 keeps its ".0", small and large
// numbers have an exponent of at least two digits (3.6e-05); nan, inf, -inf.
std::string python_repr(double number);

// As Python's json.dumps() with its defaults: ", " and ": ", characters beyond ASCII escaped, NaN and Infinity bare.
std::string python_json(const nlohmann::ordered_json& value);

}  // namespace megalith::observe
