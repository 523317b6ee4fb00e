#pragma once

#include <memory>

#include "config/run_config.h"
#include "core/telemetry.h"
#include "observe/console.h"
#include "train/origin.h"
#include "train/run_directory.h"

namespace megalith::train {

// Who is told what a run does: on rank 0 the console and the files that the config asks for, elsewhere nobody.
struct Listeners {
  void add_files_and_console(const config::Run& run, const RunDirectory& directory, const Origin& origin);

  // Everything that was told is in its place.
  void finish();

  Telemetry telemetry;
  std::shared_ptr<observe::ConsoleSink> console;
};

}  // namespace megalith::train
