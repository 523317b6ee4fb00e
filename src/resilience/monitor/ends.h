#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "core/process/process_facts.h"
#include "resilience/messages.h"

namespace megalith::resilience {

// How the processes of a node ended, in one file of a line each: whoever is the parent of one writes it there before
// the kernel forgets it, the monitor or, for ranks that lost theirs, the anchor.

struct EndedChild {
  ProcessIdentity process;
  ProcessEnd end;
};

// A child of this process that has ended, if one has; it is still there, and so is its number. `pid` 0: any.
std::optional<EndedChild> find_ended_child(pid_t pid = 0);
// Ends what is left of its group and lets it go.
void let_go(const EndedChild& child);

void write_end(const std::filesystem::path& ends, const EndedChild& child);
std::optional<ProcessEnd> read_end(const std::filesystem::path& ends, const ProcessIdentity& process);

}  // namespace megalith::resilience
