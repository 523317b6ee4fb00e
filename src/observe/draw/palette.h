#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace megalith::observe {

// A colour by what it means, on light and on dark pages, as 0xRRGGBB.
struct Ink {
  std::string_view name;
  uint32_t light = 0;
  uint32_t dark = 0;
};

// An internal error for a name that the palette lacks.
const Ink& ink_named(std::string_view name);

// The ink of the nth of several runs laid over each other.
std::string_view ink_of_run(size_t index);

// "--train:#2563eb;..." of every ink.
std::string css_variables(bool dark);

}  // namespace megalith::observe
