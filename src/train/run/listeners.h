#pragma once

#include <functional>
#include <memory>

#include "config/run_config.h"
#include "core/telemetry.h"
#include "observe/sinks/console.h"
#include "train/run/origin.h"
#include "train/run/run_directory.h"

namespace megalith::train {

// The width of the terminal that standard output is, or that a launcher shows it on (MEGALITH_TERMINAL, set for rank
// 0); nothing where there is no terminal.
std::function<int()> find_terminal();

// Who is told what a run does: on rank 0 the sinks that the config asks for, behind queues with threads of their own,
// so that telling costs a step next to nothing; elsewhere nobody.
struct Listeners {
  void add_sinks(const config::Run& run, const RunDirectory& directory, const Origin& origin);

  // Everything that was told is in its place.
  void finish();

  Telemetry telemetry;
  std::shared_ptr<observe::ConsoleSink> console;  // null: no progress is shown
};

}  // namespace megalith::train
