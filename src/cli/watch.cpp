#include "observe/watch/watch.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/accepts.h"
#include "cli/verbs.h"

namespace megalith::cli {

void add_watch(CLI::App& program, Action& run) {
  CLI::App* verb =
      program.add_subcommand("watch",
                             "Watch a run: progress, time left, loss, tokens/s, MFU, memory, the slowest rank.\n\n"
                             "  megalith watch runs/demo\n"
                             "  megalith watch runs/demo --once | mail -s demo me\n\n"
                             "A run that has not begun is waited for. q or Ctrl-C leaves; the run does not notice.\n"
                             "NO_COLOR=1 shows it without colours; COLUMNS is the width where there is no terminal.");
  const auto options = std::make_shared<observe::WatchOptions>();
  verb->add_option("directory", options->directory, "the run's directory")->required();
  verb->add_flag("--once", options->once, "show it as it is now and exit");
  verb->add_option("--interval", options->interval_seconds, "seconds between looks")
      ->check(between_real(0.05, 3600))
      ->capture_default_str();
  verb->add_option("--stall", options->stall_seconds,
                   "seconds without a line after which a run counts as stalled (default: 20 steps, at least 2 minutes)")
      ->check(above(0));
  verb->callback([options, &run] {
    run = [options] {
      observe::watch(*options);
      return kExitComplete;
    };
  });
}

}  // namespace megalith::cli
