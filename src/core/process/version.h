#pragma once

#include <string>

namespace megalith {

// "megalith 0.1.0 (1a2b3c4d5)"; without the commit where the sources were built outside of their repository.
std::string program_version();

}  // namespace megalith
