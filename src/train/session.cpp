#include "train/session.h"

#include <iostream>
#include <optional>

#include "checkpoint/kept_tokenizer.h"
#include "comm/world.h"
#include "config/layout.h"
#include "config/print.h"
#include "core/device.h"
#include "core/failpoint.h"
#include "data/indexed_dataset.h"
#include "data/make_dataset.h"
#include "data/tokenizer.h"
#include "observe/log_files.h"
#include "observe/report.h"
#include "train/checkpoint_writer.h"
#include "train/describe.h"
#include "train/layout.h"
#include "train/listeners.h"
#include "train/load_origin.h"
#include "train/plan_files.h"
#include "train/step_metrics.h"

namespace megalith::train {

namespace {

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

void print_start(const config::Run& run, const config::LoadReport& report, int64_t vocabulary) {
  std::cout << config::to_yaml(run) << config::describe(report) << describe_model(run, vocabulary) << std::flush;
}

void say_origin(const Origin& origin) {
  if (origin.loaded) {
    std::cout << fmt::format("{} {}\n", origin.weights_only ? "weights from" : "resuming from",
                             origin.loaded->path().string())
              << std::flush;
  }
  observe::log_info(fmt::format("run {} starts at step {} (start {})", origin.state.run_id, origin.state.step,
                                origin.generation + 1));
}

void fill_engine(Engine& engine, OriginFinder& finder, Origin& origin, uint64_t seed, Telemetry& telemetry) {
  if (origin.loaded) {
    load_origin(engine, finder, origin, telemetry);
  } else {
    engine.initialise(seed);
  }
  telemetry.emit(Event{.name = "checkpoint_loaded", .step = origin.state.step});
}

Summary run_trainer(Trainer& trainer, Listeners& listeners) {
  try {
    Summary summary = trainer.run();
    listeners.telemetry.emit(
        Event{.name = "job_terminated", .step = summary.steps_done, .reason = summary.stop_reason});
    listeners.finish();
    return summary;
  } catch (const std::exception& error) {
    listeners.telemetry.emit(Event{.name = "job_terminated", .reason = error.what()});
    listeners.finish();
    throw;
  }
}

// What only rank 0 has: it alone writes the run's files, but for checkpoints and the logs of the others.
struct Chief {
  Chief(const config::Run& run, const config::LoadReport& report, int64_t vocabulary)
      : directory(RunDirectory::open(run)) {
    observe::set_up_log({.directory = directory.path()});
    print_start(run, report, vocabulary);
  }

  RunDirectory directory;
};

void set_up_log_of_rank(const config::Run& run, int64_t rank) {
  observe::set_up_log(
      {.directory = run_path(run), .global_rank = rank, .local_rank = rank % run.trainer.devices, .console = false});
}

// What a run computes on is told with its start, so that its log alone can be judged.
Event start_event(const Engine& engine, int64_t step) {
  Event event{.name = "job_started", .step = step};
  if (engine.options().stage.device == Device::cuda)
    event.fields.emplace_back("accelerator", find_accelerators().at(0).name);
  if (const auto peak = peak_tflops_of(engine.options())) event.fields.emplace_back("peak_tflops", *peak);
  return event;
}

void keep_tokenizer(const config::Run& run, const Tiers& tiers) {
  for (const std::string& note : checkpoint::keep_tokenizer(run.model.tokenizer, tiers.persistent))
    observe::log_warning(note);
}

}  // namespace

Summary train(const config::Run& run, const config::LoadReport& report, comm::World* world) {
  check_ranks(run, world == nullptr ? 1 : world->size());
  for (const std::string& failpoint : run.failpoints) arm_failpoint(failpoint);
  const data::Vocabulary vocabulary = data::vocabulary_of(run.model.tokenizer);
  check_layout(run, vocabulary.size);
  check_device(run, stage_request(run, vocabulary.size));
  // Opened first, so that a missing data file leaves no run directory behind.
  if (run.model.data.data_impl != "mock") {
    for (const std::string& prefix : data::data_prefixes(run.model.data)) data::IndexedDataset{prefix};
  }

  const int rank = world == nullptr ? 0 : world->rank();
  std::optional<Chief> chief;
  if (rank == 0) chief.emplace(run, report, vocabulary.size);
  Engine engine(training_options(run, vocabulary.size), world);
  const std::string told = engine.tell_all(chief ? chief->directory.identity().to_text() : "");
  if (!chief) set_up_log_of_rank(run, rank);
  const RunIdentity identity = RunIdentity::from_text(told);
  const Tiers tiers = tiers_of(run, rank);
  std::optional<checkpoint::Peers> peers;
  if (run.trainer.num_nodes > 1) peers.emplace(*world, run.trainer.communication_timeout);
  std::optional<OriginFinder> finder(std::in_place, run, identity,
                                     CheckpointSearch::Options{.tiers = tiers,
                                                               .run_id = identity.id,
                                                               .world = world,
                                                               .ranks_per_node = static_cast<int>(run.trainer.devices),
                                                               .peers = peers ? &*peers : nullptr,
                                                               .deadline = run.trainer.communication_timeout});
  Origin origin = finder->first();

  Listeners listeners;
  if (chief) {
    say_origin(origin);
    listeners.add_sinks(run, chief->directory, origin);
  }
  listeners.telemetry.emit(start_event(engine, origin.state.step));
  fill_engine(engine, *finder, origin, static_cast<uint64_t>(run.model.seed), listeners.telemetry);
  const std::optional<int64_t> loaded_step = origin.loaded ? std::optional(origin.state.step) : std::nullopt;
  // Files that are open do not give their room back.
  origin.loaded.reset();
  finder.reset();
  make_plans(engine, run, chief ? chief->directory.plans() : std::filesystem::path(), origin.state.extra["plans"]);
  origin.state.extra.erase("plans");
  if (engine.stream().device() == Device::cuda)
    origin.state.extra["plans"] = engine.tell_all(chief ? read_text(chief->directory.plans()) : "");
  if (chief) replace_file(chief->directory.hparams(), origin.state.config);

  const auto train_data =
      data::make_dataset(with_data_seed(run, origin.state), data::Split::train, vocabulary, origin.state.data.horizon);
  const auto held_out = validation_data(run, vocabulary, origin.state);
  std::optional<CheckpointWriter> writer;
  if (run.exp_manager.create_checkpoint_callback) {
    if (chief) keep_tokenizer(run, tiers);
    writer.emplace(CheckpointWriter::Options{.run = run,
                                             .tiers = tiers,
                                             .identity = identity,
                                             .engine = engine,
                                             .world = world,
                                             .peers = peers ? &*peers : nullptr,
                                             .loaded_step = loaded_step});
  }
  Trainer trainer({.run = run,
                   .engine = engine,
                   .telemetry = listeners.telemetry,
                   .train_data = *train_data,
                   .validation_data = held_out.get(),
                   .vocabulary = vocabulary,
                   .writer = writer ? &*writer : nullptr,
                   .state = origin.state,
                   .rank = rank});
  Summary summary = run_trainer(trainer, listeners);
  if (!chief) return summary;
  observe::write_report(chief->directory.path());
  std::cout << describe(summary, chief->directory) << std::flush;
  return summary;
}

}  // namespace megalith::train
