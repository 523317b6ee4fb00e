#pragma once

#include <cstdint>
#include <string>

#include "core/telemetry.h"

namespace megalith::observe {

// Who writes a log of events (sinks/events.h has the format).
struct EventOrigin {
  std::string run_id;
  int64_t generation = 0;  // how often the run was started before
  int64_t rank = 0;
  std::string node = {};  // empty: this host's name
};

// Changes with every start of the machine; "unknown" where the kernel does not say.
std::string boot_id();

// One line, with its end. `sequence` counts what comes to this file, from 1.
std::string event_text(const Event& event, const EventOrigin& origin, const std::string& boot, int64_t sequence);

}  // namespace megalith::observe
