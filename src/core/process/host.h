#pragma once

#include <string>

namespace megalith {

// This machine's name, "unknown" where it has none.
std::string host_name();

// Its processor, "AMD EPYC 7B13, 64 threads".
std::string processor_name();

}  // namespace megalith
