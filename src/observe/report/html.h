#pragma once

#include <string>
#include <string_view>

namespace megalith::observe {

std::string escape_html(std::string_view text);

}  // namespace megalith::observe
