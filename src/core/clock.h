#pragma once

#include <cstdint>
#include <string>

namespace megalith {

// Seconds since an arbitrary point; never steps back.
double monotonic_seconds();

// Seconds since 1970-01-01 UTC.
double wall_seconds();

// "2026-01-31T12:34:56.789012Z".
std::string utc_timestamp(double seconds_since_epoch);

// "2026-01-31 12:34:56.789012" in local time.
std::string local_timestamp(double seconds_since_epoch);

}  // namespace megalith
