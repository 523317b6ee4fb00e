#include "train/listeners.h"

#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "config/print.h"
#include "observe/dllogger.h"
#include "observe/events.h"
#include "observe/tensorboard.h"

namespace megalith::train {

namespace {
nlohmann::ordered_json parameters_record(const config::Run& run) {
  nlohmann::ordered_json record;
  for (const auto& [key, value] : config::flatten(run)) record[key] = value;
  return record;
}
}  // namespace

void Listeners::add_files_and_console(const config::Run& run, const RunDirectory& directory, const Origin& origin) {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  console = std::make_shared<observe::ConsoleSink>(
      observe::ConsoleOptions{.out = &std::cout,
                              .terminal = terminal,
                              .width = [] { return observe::terminal_width(STDOUT_FILENO); },
                              .max_steps = run.trainer.max_steps,
                              .first_step = origin.state.step,
                              .log_every_n_steps = run.trainer.log_every_n_steps});
  if (terminal) observe::print_log_above(console);
  telemetry.add(console);
  telemetry.add(std::make_shared<observe::EventsSink>(
      directory.events(), observe::EventOrigin{.run_id = origin.state.run_id, .generation = origin.generation}));
  if (run.exp_manager.create_dllogger_logger) {
    std::filesystem::create_directories(directory.dllogger().parent_path());
    telemetry.add(std::make_shared<observe::DlloggerSink>(directory.dllogger(), parameters_record(run)));
  }
  if (run.exp_manager.create_tensorboard_logger) {
    telemetry.add(std::make_shared<observe::TensorBoardSink>(directory.path(), config::to_yaml(run)));
  }
}

void Listeners::finish() {
  telemetry.flush();
  if (console) console->finish();
}

}  // namespace megalith::train
