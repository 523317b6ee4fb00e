#include <CLI/CLI.hpp>

#include "cli/verbs.h"
#include "core/process/exit_codes.h"
#include "launch/ranks/store_process.h"

namespace megalith::cli {

// Not in the help: monitors alone start it.
void add_serve_store(CLI::App& program, Action& run) {
  CLI::App* verb =
      program.add_subcommand("serve-store", "Serve the store of a run to its ranks (started by a monitor).");
  verb->group("");
  verb->callback([&run] {
    run = [] {
      launch::serve_store();
      return kExitComplete;
    };
  });
}

}  // namespace megalith::cli
