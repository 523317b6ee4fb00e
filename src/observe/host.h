#pragma once

#include <string>

namespace megalith::observe {

// This machine's name, "unknown" where it has none.
std::string host_name();

}  // namespace megalith::observe
