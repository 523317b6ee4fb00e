#include "train/run/listeners.h"

#include <fcntl.h>
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "config/derived.h"
#include "config/environment/environment.h"
#include "config/print.h"
#include "core/file.h"
#include "observe/sinks/dllogger.h"
#include "observe/sinks/events.h"
#include "observe/sinks/log_files.h"
#include "observe/sinks/megatron_line.h"
#include "observe/sinks/prometheus.h"
#include "observe/sinks/queued_sink.h"
#include "observe/sinks/tensorboard/tensorboard.h"

namespace megalith::train {

std::function<int()> find_terminal() {
  if (isatty(STDOUT_FILENO) != 0) return [] { return observe::terminal_width(STDOUT_FILENO); };
  const std::string path = config::process_environment("MEGALITH_TERMINAL").value_or("");
  if (path.empty()) return nullptr;
  return [path] {
    constexpr int kPrefix = 4;  // "[0] " in front of each line
    const int terminal = ::open(path.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC);
    const int width = observe::terminal_width(terminal);
    if (terminal >= 0) ::close(terminal);
    return width - kPrefix;
  };
}

namespace {
using Console = std::shared_ptr<observe::ConsoleSink>;
using Sinks = std::vector<std::shared_ptr<Sink>>;

Console make_console(const config::Run& run, const Origin& origin) {
  const std::function<int()> width = find_terminal();
  auto console =
      std::make_shared<observe::ConsoleSink>(observe::ConsoleOptions{.out = &std::cout,
                                                                     .terminal = width != nullptr,
                                                                     .width = width,
                                                                     .max_steps = run.trainer.max_steps,
                                                                     .first_step = origin.state.step,
                                                                     .loads_checkpoint = origin.loaded.has_value(),
                                                                     .log_every_n_steps = run.trainer.log_every_n_steps,
                                                                     .tick_seconds = 1.0});
  if (console->on_terminal()) observe::print_log_above(console);
  return console;
}

std::shared_ptr<Sink> make_megatron_lines(const config::Run& run, const Console& console) {
  const auto print = [console](std::string_view text) {
    if (console) {
      console->print_above(text);
    } else {
      std::cout << text << std::flush;
    }
  };
  return std::make_shared<observe::MegatronLineSink>(
      observe::MegatronLineOptions{.print = print,
                                   .max_steps = run.trainer.max_steps,
                                   .log_every_n_steps = run.trainer.log_every_n_steps,
                                   .global_batch_size = run.model.global_batch_size});
}

std::shared_ptr<Sink> make_dllogger(const config::Run& run, const RunDirectory& directory) {
  nlohmann::ordered_json parameters;
  for (const auto& [key, value] : config::flatten(run)) parameters[key] = value;
  make_parent_directory(directory.dllogger());
  return std::make_shared<observe::DlloggerSink>(directory.dllogger(), parameters);
}

std::shared_ptr<Sink> make_prometheus(const config::Run& run, const Origin& origin) {
  const config::Prometheus& where = run.exp_manager.prometheus;
  auto sink =
      std::make_shared<observe::PrometheusSink>(observe::PrometheusOptions{.address = where.address,
                                                                           .port = static_cast<uint16_t>(where.port),
                                                                           .run_name = run.name,
                                                                           .run_id = origin.state.run_id});
  observe::log_info(fmt::format("metrics are served at http://{}:{}/metrics", where.address, sink->port()));
  return sink;
}
Sinks screen_sinks(const config::Run& run, const Console& console) {
  Sinks sinks;
  if (console) sinks.push_back(console);
  if (run.exp_manager.log_megatron_iterations) sinks.push_back(make_megatron_lines(run, console));
  return sinks;
}

Sinks record_sinks(const config::Run& run, const RunDirectory& directory, const Origin& origin) {
  const config::ExpManager& wanted = run.exp_manager;
  Sinks sinks;
  // First, since it may refuse: then no file is begun.
  if (wanted.prometheus.port > 0) sinks.push_back(make_prometheus(run, origin));
  if (wanted.create_events_logger) {
    sinks.push_back(std::make_shared<observe::EventsSink>(
        directory.events(), observe::EventOrigin{.run_id = origin.state.run_id, .generation = origin.generation}));
  }
  if (wanted.create_dllogger_logger) sinks.push_back(make_dllogger(run, directory));
  if (wanted.create_tensorboard_logger) {
    sinks.push_back(std::make_shared<observe::TensorBoardSink>(
        observe::TensorBoardOptions{.directory = directory.path(),
                                    .config_text = config::to_yaml(run),
                                    .global_batch_size = run.model.global_batch_size,
                                    .ranks = config::world_size(run.trainer),
                                    .first_step = origin.state.step,
                                    .consumed_samples = origin.state.consumed_samples}));
  }
  return sinks;
}
}  // namespace

void Listeners::add_sinks(const config::Run& run, const RunDirectory& directory, const Origin& origin) {
  if (run.trainer.enable_progress_bar) console = make_console(run, origin);
  // A terminal that somebody has paused must not keep the files waiting: each kind has a queue of its own.
  for (Sinks sinks : {screen_sinks(run, console), record_sinks(run, directory, origin)}) {
    if (!sinks.empty()) telemetry.add(std::make_shared<observe::QueuedSink>(std::move(sinks)));
  }
}

void Listeners::finish() {
  telemetry.flush();
  if (console) console->finish();
}

}  // namespace megalith::train
