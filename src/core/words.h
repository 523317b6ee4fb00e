#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

// Numbers as people read them.

// "1 step", "20 steps".
std::string counted(int64_t number, std::string_view noun);

// 12345.6 is "12,346". Takes no negative numbers.
std::string with_commas(double number);

// "512 B", "1.5 KiB", "477.3 MiB", "72.80 GiB", "1.25 TiB".
std::string bytes_in_words(double bytes);

// 0.1234 is "12.3%", 1e-6 is "below 0.01%".
std::string percent_in_words(double share);

// "32 us", "12.3 ms", "0.31 s", "4 min 33 s", "3 h 12 min", "5 d 4 h".
std::string duration_in_words(double seconds);

// As a clock that runs: "01:50", or "1:02:03" from an hour on.
std::string format_duration(double seconds);

}  // namespace megalith
