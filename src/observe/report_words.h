#pragma once

#include <string>

namespace megalith::observe {

// 12345.6 is "12,346". Of a number that is not negative.
std::string with_thousands(double number);

// "0.31 s", "4 min 33 s", "3 h 12 min", "5 d 4 h".
std::string in_words(double seconds);

// "1.5 GiB".
std::string bytes_in_words(double bytes);

}  // namespace megalith::observe
