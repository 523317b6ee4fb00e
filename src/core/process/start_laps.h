#pragma once

#include <string>
#include <utility>
#include <vector>

namespace megalith {

// What the start of this process went through, so that a restart can be told second by second (scripts/restart-time).
// From one lap to the next it did what the later one is called; the first begins with the process itself.
void end_start_lap(const char* what);

// In order, with their seconds.
std::vector<std::pair<std::string, double>> start_laps();

}  // namespace megalith
