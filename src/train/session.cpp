#include "train/session.h"

#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "config/keys.h"
#include "config/layout.h"
#include "config/print.h"
#include "core/clock.h"
#include "core/failpoint.h"
#include "data/indexed_dataset.h"
#include "data/make_dataset.h"
#include "data/tokenizer.h"
#include "observe/console.h"
#include "observe/dllogger.h"
#include "observe/events.h"
#include "observe/log_files.h"
#include "observe/report.h"
#include "observe/tensorboard.h"
#include "train/describe.h"

namespace megalith::train {

namespace {

std::string new_run_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

void refuse_what_cannot_run_here(const config::Run& run) {
  const int64_t world = config::world_size(run.trainer);
  if (world != 1) {
    user_error(
        "the config asks for {} ranks (trainer.devices x trainer.num_nodes); this program trains on one. Use "
        "trainer.devices=1 trainer.num_nodes=1 and parallel sizes of 1, or --dry-run to see what the layout needs",
        world);
  }
  if (run.trainer.accelerator == "gpu") {
    user_error("trainer.accelerator=gpu: this build of Megalith computes on the CPU; use trainer.accelerator=cpu");
  }
}

// The state that a run starts from, and the checkpoint it is taken from where there is one.
struct Origin {
  checkpoint::RunState state;
  std::optional<checkpoint::Loaded> loaded;
  int64_t generation = 0;
};

void note_changes(const config::Run& run, const std::string& stored_config) {
  const std::vector<config::Source> sources{{.name = "checkpoint", .text = stored_config}};
  config::Run before = config::load(sources, {});
  config::Run now = run;
  const std::vector<config::Key> old_keys = config::keys_of(before);
  const std::vector<config::Key> new_keys = config::keys_of(now);
  for (size_t i = 0; i < new_keys.size(); ++i) {
    const std::string old_value = config::value_text(old_keys[i].field);
    const std::string new_value = config::value_text(new_keys[i].field);
    if (old_value != new_value) {
      observe::log_info(
          fmt::format("changed since the checkpoint: {} from {} to {}", new_keys[i].path, old_value, new_value));
    }
  }
}

Origin continue_from(checkpoint::Loaded loaded, const config::Run& run) {
  Origin origin{.state = loaded.manifest().state, .loaded = std::move(loaded)};
  note_changes(run, origin.state.config);
  const auto generation = origin.state.extra.find("generation");
  if (generation != origin.state.extra.end()) origin.generation = std::stoll(generation->second) + 1;
  return origin;
}

Origin find_origin(const config::Run& run, const RunDirectory& directory, checkpoint::Store& store) {
  if (directory.resumes()) {
    const checkpoint::Latest latest = store.latest_verified();
    for (const checkpoint::PassedOver& bad : latest.passed_over) {
      observe::log_warning(fmt::format("checkpoint {} cannot be used: {}", bad.name, bad.reason));
    }
    if (latest.step) return continue_from(store.open(*latest.step), run);
    if (!latest.passed_over.empty()) {
      data_error("no checkpoint in {} can be used; the first reason: {}: {}", store.directory().string(),
                 latest.passed_over.front().name, latest.passed_over.front().reason);
    }
    observe::log_warning("no checkpoint yet in this run directory: starting from step 0");
  }
  if (!run.model.resume_from_checkpoint.empty()) {
    Origin origin = continue_from(checkpoint::Loaded::open(run.model.resume_from_checkpoint), run);
    origin.state.run_id = new_run_id();
    return origin;
  }
  return {.state = {.run_id = new_run_id(),
                    .data = {.horizon = data::samples_wanted(run, data::Split::train), .seed = run.model.seed}}};
}

nlohmann::ordered_json parameters_record(const config::Run& run) {
  nlohmann::ordered_json record;
  for (const auto& [key, value] : config::flatten(run)) record[key] = value;
  return record;
}

struct Listeners {
  Telemetry telemetry;
  std::shared_ptr<observe::ConsoleSink> console;
};

void add_sinks(Listeners& listeners, const config::Run& run, const RunDirectory& directory, const Origin& origin) {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  listeners.console = std::make_shared<observe::ConsoleSink>(
      observe::ConsoleOptions{.out = &std::cout,
                              .terminal = terminal,
                              .width = [] { return observe::terminal_width(STDOUT_FILENO); },
                              .max_steps = run.trainer.max_steps,
                              .first_step = origin.state.step,
                              .log_every_n_steps = run.trainer.log_every_n_steps});
  if (terminal) observe::print_log_above(listeners.console);
  Telemetry& telemetry = listeners.telemetry;
  telemetry.add(listeners.console);
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

// The config as it is now becomes part of the state, so that every checkpoint carries it.
void complete_state(Origin& origin, const config::Run& run) {
  origin.state.config = config::to_yaml(run);
  origin.state.extra["generation"] = std::to_string(origin.generation);
}

config::Run with_data_seed(config::Run run, const checkpoint::RunState& state) {
  run.model.seed = state.data.seed;
  return run;
}

std::unique_ptr<data::Dataset> validation_data(const config::Run& run, const data::Vocabulary& vocabulary,
                                               const checkpoint::RunState& state) {
  if (run.trainer.val_check_interval == 0 || run.trainer.limit_val_batches == 0) return nullptr;
  const int64_t samples = run.trainer.limit_val_batches * run.model.global_batch_size;
  return data::make_dataset(with_data_seed(run, state), data::Split::valid, vocabulary, samples);
}

void print_start(const config::Run& run, const config::LoadReport& report, const Origin& origin, int64_t vocabulary) {
  std::cout << config::to_yaml(run) << config::describe(report) << describe_model(run, vocabulary);
  if (origin.loaded) std::cout << fmt::format("resuming from {}\n", origin.loaded->path().string());
  std::cout << std::flush;
}

void print_summary(const Summary& summary, const RunDirectory& directory, const checkpoint::Store& store) {
  std::string text =
      fmt::format("{} {} steps, {} tokens in {} ({:.0f} tokens/s)",
                  summary.ending == Ending::complete ? "done:" : "stopped early:", summary.steps_done, summary.tokens,
                  format_duration(summary.train_seconds),
                  summary.train_seconds > 0 ? static_cast<double>(summary.tokens) / summary.train_seconds : 0.0);
  if (!summary.stop_reason.empty()) text += fmt::format(", on {}", summary.stop_reason);
  text += '\n';
  if (summary.train_loss) text += fmt::format("  training loss    {:.4f}\n", *summary.train_loss);
  if (summary.validation_loss) text += fmt::format("  validation loss  {:.4f}\n", *summary.validation_loss);
  if (summary.skipped_steps > 0) text += fmt::format("  skipped steps    {}\n", summary.skipped_steps);
  text += fmt::format("  run directory    {}\n", directory.path().string());
  if (std::filesystem::exists(store.directory()))
    text += fmt::format("  checkpoints      {}\n", store.directory().string());
  text += fmt::format("  report           {}\n", directory.report().string());
  if (summary.ending == Ending::stopped_early)
    text += "  run the same command with exp_manager.resume_if_exists=true to continue\n";
  std::cout << text << std::flush;
}

}  // namespace

Summary train(const config::Run& run, const config::LoadReport& report) {
  refuse_what_cannot_run_here(run);
  const data::Vocabulary vocabulary = data::vocabulary_of(run.model.tokenizer);
  for (const std::string& failpoint : run.failpoints) arm_failpoint(failpoint);

  // Opened first, so that a missing data file leaves no run directory behind.
  if (run.model.data.data_impl != "mock") data::IndexedDataset(data::single_prefix(run.model.data));
  const RunDirectory directory = RunDirectory::open(run);
  observe::set_up_log({.directory = directory.path()});
  checkpoint::Store store(directory.checkpoints(), run.exp_manager.checkpoint_callback_params.save_top_k);
  Origin origin = find_origin(run, directory, store);
  complete_state(origin, run);
  replace_file(directory.hparams(), origin.state.config);
  print_start(run, report, origin, vocabulary.size);

  const model::MemoryRequest request = memory_request(run, vocabulary.size);
  Engine engine({.model = request.config,
                 .batch = request.batch,
                 .length = request.length,
                 .threads = request.cpu_threads,
                 .seed = static_cast<uint64_t>(run.model.seed),
                 .optim = run.model.optim,
                 .clip_norm = run.trainer.gradient_clip_val});
  Listeners listeners;
  add_sinks(listeners, run, directory, origin);
  Telemetry& telemetry = listeners.telemetry;
  telemetry.emit(Event{.name = "job_started", .step = origin.state.step});
  if (origin.loaded) {
    const Span span(telemetry, "checkpoint_load", origin.state.step);
    engine.restore(*origin.loaded);
  } else {
    engine.initialise(static_cast<uint64_t>(run.model.seed));
  }
  telemetry.emit(Event{.name = "checkpoint_loaded", .step = origin.state.step});

  const auto train_data =
      data::make_dataset(with_data_seed(run, origin.state), data::Split::train, vocabulary, origin.state.data.horizon);
  const auto held_out = validation_data(run, vocabulary, origin.state);
  Trainer trainer({.run = run,
                   .engine = engine,
                   .telemetry = telemetry,
                   .train_data = *train_data,
                   .validation_data = held_out.get(),
                   .vocabulary = vocabulary,
                   .store = run.exp_manager.create_checkpoint_callback ? &store : nullptr,
                   .state = origin.state});
  try {
    const Summary summary = trainer.run();
    telemetry.emit(Event{.name = "job_terminated", .step = summary.steps_done, .reason = summary.stop_reason});
    telemetry.flush();
    listeners.console->finish();
    observe::write_report(directory.path());
    print_summary(summary, directory, store);
    return summary;
  } catch (const std::exception& error) {
    telemetry.emit(Event{.name = "job_terminated", .reason = error.what()});
    telemetry.flush();
    listeners.console->finish();
    throw;
  }
}

}  // namespace megalith::train
