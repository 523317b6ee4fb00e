#pragma once

#include <memory>

#include "config/environment/environment.h"
#include "core/process/status_page.h"

namespace megalith::launch {

// A rank under a monitor: its starter has made a status page for it (StatusPage::create) and named the file in
// MEGALITH_STATUS_PAGE. Such a rank
//   - says there how far it has come, and ends at a step boundary when it is asked there; stop signals mean nothing;
//   - outlives its starter;
//   - finds the store of its run at MASTER_ADDR and MASTER_PORT, served by a process of its own (store_process.h);
//   - takes faults for drills (core/process/failpoint.h) from MEGALITH_FAILPOINTS, divided by ';', and not from its
//   config.
// All else is as for any rank: RANK, WORLD_SIZE, LOCAL_RANK, MEGALITH_GENERATION, and the secret by its line
// (core/process/launcher_line.h).
inline constexpr const char* kStatusPageVariable = "MEGALITH_STATUS_PAGE";
inline constexpr const char* kFailpointsVariable = "MEGALITH_FAILPOINTS";

bool has_monitor(const config::Lookup& environment = config::process_environment);

// That of this process, once: under a monitor its file, with the faults armed that were asked for; else memory that
// nobody reads. User error for a page of another rank or generation.
std::unique_ptr<StatusPage> open_status_page(const config::Lookup& environment = config::process_environment);

}  // namespace megalith::launch
