#include "train/run/session.h"

#include <functional>
#include <iostream>
#include <optional>

#include "checkpoint/kept_tokenizer.h"
#include "checkpoint/lineage.h"
#include "comm/store/rendezvous.h"
#include "comm/world.h"
#include "config/derived.h"
#include "core/clock.h"
#include "core/device.h"
#include "core/event_names.h"
#include "core/process/failpoint.h"
#include "core/process/host.h"
#include "core/process/start_laps.h"
#include "core/process/version.h"
#include "core/words.h"
#include "data/order/make_dataset.h"
#include "data/tokenizer/data_tokenizer.h"
#include "data/tokenizer/tokenizer.h"
#include "observe/draw/wrapped_text.h"
#include "observe/report/report.h"
#include "observe/sinks/log_files.h"
#include "plan/describe_layout.h"
#include "plan/rehearsal.h"
#include "plan/run_layout.h"
#include "plan/run_request.h"
#include "train/describe_run.h"
#include "train/run/checkpoint_writer.h"
#include "train/run/listeners.h"
#include "train/run/load_origin.h"
#include "train/run/rosters.h"
#include "train/run/run_files.h"
#include "train/run/same_data.h"
#include "train/state/restore.h"
#include "train/step_metrics.h"
#include "train/tuned_files.h"

namespace megalith::train {

namespace {

// For a node without ranks to answer: it trains nothing, and what it holds may be elsewhere as well.
constexpr double kHolderSeconds = 10.0;

// What decides the order of samples is that of the run's first start.
config::Run as_started(config::Run run, const checkpoint::RunState& state) {
  run.model.seed = state.data.seed;
  run.trainer.max_steps = state.data.horizon / run.model.global_batch_size;
  return run;
}

std::unique_ptr<data::Dataset> validation_data(const config::Run& run, const data::Vocabulary& vocabulary,
                                               const checkpoint::RunState& state) {
  if (run.trainer.val_check_interval == 0 || run.trainer.limit_val_batches == 0) return nullptr;
  const config::Run started = as_started(run, state);
  return data::make_dataset(started, data::Split::valid, vocabulary, data::samples_wanted(started, data::Split::valid));
}

void print_start(const config::Run& run, const config::LoadReport& report, int64_t vocabulary) {
  const std::string text =
      describe_run(run, vocabulary) + config::describe(report) + plan::describe_model(run, vocabulary);
  const auto width = find_terminal();
  std::cout << (width ? observe::wrap_lines(text, width()) : text) << std::flush;
  if (learns_made_up_tokens(run.model.data)) observe::log_warning(kMadeUpTokens);
}

void say_origin(const Origin& origin) {
  if (origin.loaded) {
    const std::string& saved_by = origin.loaded->manifest().state.run_id;
    const std::string of_run = saved_by == origin.state.run_id ? "" : fmt::format(", of run {}", saved_by);
    observe::log_info(fmt::format("{} {}{}", origin.weights_only ? "weights from" : "resuming from",
                                  origin.loaded->path().string(), of_run));
  }
  observe::log_info(fmt::format("run {} starts at step {} (start {})", origin.state.run_id, origin.state.step,
                                origin.state.extra.at(checkpoint::kGenerationKey)));
}

// What a start found out before it wrote anything.
struct Checked {
  const config::Run& run;
  data::Vocabulary vocabulary;
  DataIdentity data;
  const StartOptions& options;
  const Tiers& tiers;  // of this rank's node
  checkpoint::Lineage lineage = {};
  std::vector<checkpoint::RemoteHolder> holders = {};
};

void take_word_of_monitor(const config::FleetEnvironment& fleet, Checked& checked) {
  checked.lineage = checkpoint::Lineage(fleet.generations);
  if (!fleet.holders_file.empty()) checked.holders = checkpoint::read_holders(fleet.holders_file);
}

// Samples are counted in the data that a run began with: others would be a run that nobody can tell or repeat.
void require_same_data(const Checked& checked, const checkpoint::Loaded& loaded) {
  const checkpoint::RunState& before = loaded.manifest().state;
  if (before.consumed_samples == 0) return;
  const std::string changes = data_changes(before, checked.run.model.data, checked.data);
  if (changes.empty()) return;
  const std::string what = fmt::format("the data are not those of {}: {}", loaded.path().string(), changes);
  if (!checked.options.resume_with_other_data) {
    user_error(
        "{}\n  to go on with the new data say --resume-with-other-data; for a run of its own set "
        "exp_manager.explicit_log_dir=DIR",
        what);
  }
  observe::log_warning(what);
}

void write_report(const RunDirectory& directory) {
  try {
    observe::write_report(directory.path());
  } catch (const std::exception& error) {
    observe::log_warning(fmt::format("no report: {}", error.what()));
  }
}

// What only rank 0 has: it alone writes the run's files, but for checkpoints and the logs of the others.
struct Chief {
  Chief(const Checked& checked, const config::LoadReport& report)
      : directory(checked.options.fleet ? RunDirectory::open(checked.run, *checked.options.fleet)
                                        : RunDirectory::open(checked.run)) {
    observe::set_up_log({.directory = directory.path()});
    if (!directory.note().empty()) observe::log_warning(directory.note());
    print_start(checked.run, report, checked.vocabulary.size);
  }

  RunDirectory directory;
  bool started = false;  // what follows is part of the run's history
};

Fields facts_of(const std::exception& failure) {
  const auto* error = dynamic_cast<const Error*>(&failure);
  if (error == nullptr) return {{event::kError, name_of(ErrorKind::internal)}};
  Fields fields = {{event::kError, name_of(error->kind())}};
  const ErrorFacts& facts = error->facts();
  for (const auto& [name, text] : {std::pair(event::kRanks, comm::ranks_in_words(facts.ranks)),
                                   {event::kGroup, facts.group},
                                   {event::kCall, facts.call},
                                   {event::kParameter, facts.parameter}}) {
    if (!text.empty()) fields.emplace_back(name, text);
  }
  return fields;
}

// Wherever a run fails, those who watch it and those who come later read why.
void record_failure(const std::exception& failure, Listeners& listeners, const std::optional<Chief>& chief) {
  const std::string reason = failure.what();
  listeners.telemetry.emit(Event{.name = event::kJobTerminated, .reason = reason, .fields = facts_of(failure)});
  listeners.finish();
  // The console hears it from main().
  observe::set_log_console([](std::string_view) {});
  observe::log_error(reason);
  observe::set_log_console({});
  if (chief && chief->started) write_report(chief->directory);
}

void set_up_log_of_rank(const config::Run& run, int64_t rank) {
  observe::set_up_log(
      {.directory = run_path(run), .global_rank = rank, .local_rank = rank % run.trainer.devices, .console = false});
}

// What a run computes on is told with its start, so that its log alone can be judged.
Event start_event(const engine::Engine& engine, int64_t step) {
  Event event{.name = event::kJobStarted, .step = step};
  event.fields = {{event::kProgram, program_version()}, {event::kProcessor, processor_name()}};
  if (engine.options().stage.device == Device::cuda)
    event.fields.emplace_back(event::kAccelerator, find_accelerators().at(0).name);
  if (const auto peak = peak_tflops_of(engine.options())) event.fields.emplace_back(event::kPeakTflops, *peak);
  return event;
}

// What `action` returns on rank 0, on every rank; where it fails there, every rank fails in the same way.
std::string from_first(engine::RankTalk& talk, const std::function<std::string()>& action) {
  constexpr char kDone = '+';
  std::string told;
  if (talk.rank() == 0) {
    try {
      told = kDone + action();
    } catch (const Error& error) {
      told = static_cast<char>('0' + static_cast<int>(error.kind())) + std::string(error.what());
    }
  }
  told = talk.broadcast(told);
  if (told.front() != kDone) throw Error(static_cast<ErrorKind>(told.front() - '0'), told.substr(1));
  return told.substr(1);
}

// Returns the digests of what is kept.
std::string keep_tokenizer(const config::Run& run, const Tiers& tiers, const std::string& digests) {
  for (const std::string& note : checkpoint::keep_tokenizer(run.model.tokenizer, tiers.persistent, digests))
    observe::log_warning(note);
  checkpoint::check_kept_tokenizer(tiers.persistent, digests);
  return digests.empty() ? checkpoint::kept_digests(run.model.tokenizer, tiers.persistent) : digests;
}

// Before the first step, so that nobody finds out at the first save. The lock of a directory that other runs may have:
// under a supervisor none, since a process that hangs would keep it.
std::optional<File> open_tiers(const config::Run& run, const Tiers& tiers, bool may_lock, engine::RankTalk& talk) {
  if (!run.exp_manager.create_checkpoint_callback) return std::nullopt;
  std::optional<File> lock;
  std::string reason = why_not_writable(tiers, fmt::format("rank-{}", talk.rank()));
  if (reason.empty() && may_lock && talk.rank() == 0 && !run.exp_manager.checkpoint_callback_params.dirpath.empty()) {
    try {
      lock = lock_checkpoints(tiers.persistent);
    } catch (const Error& error) {
      reason = error.what();
    }
  }
  if (!talk.any_rank(!reason.empty())) return lock;
  user_error("{}", reason.empty() ? "another rank cannot write its checkpoints" : reason);
}

// A run on this rank, in four steps.
class Session {
 public:
  Session(const Checked& checked, comm::World& world, std::optional<Chief>& chief, Listeners& listeners)
      : run_(checked.run),
        checked_(checked),
        world_(world),
        chief_(chief),
        listeners_(listeners),
        memory_(plan::memory_of_rank(plan::stage_request(run_, checked.vocabulary.size), world.rank())),
        engine_(plan::training_options(run_, checked.vocabulary.size), world, memory_.arenas),
        talk_(engine_.talk()),
        state_(engine_),
        tiers_(checked.tiers) {}

  Summary run() {
    open();
    resume();
    prepare();
    return train();
  }

 private:
  // Which run this is, and where its checkpoints are.
  void open() {
    end_start_lap("arenas");
    const std::string told = talk_.broadcast(chief_ ? chief_->directory.identity().to_text() : "");
    if (!chief_) set_up_log_of_rank(run_, world_.rank());
    identity_ = RunIdentity::from_text(told);
    checkpoints_lock_ = open_tiers(run_, tiers_, !identity_.has_roster, talk_);
    if (run_.trainer.num_nodes > 1) peers_.emplace(world_, run_.trainer.communication_timeout);
  }

  // The newest state that can be trusted, or a new one.
  void resume() {
    world_.status_page().enter(Section::load);
    pass_failpoint("train.load");
    std::optional<checkpoint::RemoteHolders> holders;
    if (!checked_.holders.empty()) holders.emplace(checked_.holders, kHolderSeconds);
    OriginFinder finder(run_, identity_, search_options(holders ? &*holders : nullptr));
    origin_ = finder.first();
    if (origin_.loaded) check_heads(*origin_.loaded, run_.model);
    if (origin_.loaded && !origin_.weights_only) require_same_data(checked_, *origin_.loaded);
    if (chief_ && identity_.is_guess) write_starts(starts_file(run_), identity_);
    if (chief_) {
      say_origin(origin_);
      listeners_.add_sinks(run_, chief_->directory, origin_);
      chief_->started = true;
    }
    listeners_.telemetry.emit(start_event(engine_, origin_.state.step));
    if (origin_.loaded) {
      load_origin(state_, talk_, finder, origin_, listeners_.telemetry);
    } else {
      observe::log_info("making the initial weights");
      engine_.initialise(static_cast<uint64_t>(run_.model.seed));
    }
    listeners_.telemetry.emit(Event{.name = event::kCheckpointLoaded, .step = origin_.state.step});
    if (origin_.loaded) loaded_step_ = origin_.state.step;
    // Files that are open do not give their room back.
    origin_.loaded.reset();
    end_start_lap("load");
  }

  // Everything that training asks for at its first step, and what the run's files must say from then on.
  void prepare() {
    world_.status_page().enter(Section::plans);
    tune(engine_, run_, chief_ ? chief_->directory.tuning() : std::filesystem::path(), origin_.state.extra["plans"]);
    origin_.state.extra.erase("plans");
    end_start_lap("tuning");
    if (engine_.stream().device() == Device::cuda)
      origin_.state.extra["plans"] = talk_.broadcast(chief_ ? read_text(chief_->directory.tuning()) : "");
    if (const auto outside = engine_.bytes_outside()) memory_.table.set(plan::kOutsideArenas, *outside);
    remember_data(checked_.data, origin_.state);
    remember_precision();
    if (chief_) replace_file(chief_->directory.hparams(), origin_.state.config);
    observe::log_info("putting the samples in order");
    train_data_ = data::make_dataset(as_started(run_, origin_.state), data::Split::train, checked_.vocabulary,
                                     origin_.state.data.horizon);
    held_out_ = validation_data(run_, checked_.vocabulary, origin_.state);
    if (run_.exp_manager.create_checkpoint_callback) open_writer();
    if (run_.exp_manager.create_checkpoint_callback && checked_.lineage.is_known()) set_given_up_aside();
    end_start_lap("data");
    Event laps{.name = event::kStartLaps, .step = origin_.state.step};
    for (const auto& [what, seconds] : start_laps()) laps.fields.emplace_back(what, seconds);
    laps.fields.emplace_back("connecting", world_.seconds_connecting());  // within the others
    listeners_.telemetry.emit(laps);
  }

  // What the scales in a checkpoint were made for.
  void remember_precision() {
    const std::string terms = engine_.precision().terms();
    std::string& before = origin_.state.extra[kPrecisionTerms];
    if (loaded_step_ && !terms.empty() && before != terms)
      observe::log_warning(
          fmt::format("the fp8 scales of the checkpoint are {}, those of this run {}: they are measured "
                      "anew on the first batch",
                      before.empty() ? "missing" : "for " + before, "for " + terms));
    before = terms;
    if (terms.empty()) origin_.state.extra.erase(kPrecisionTerms);
  }

  Summary train() {
    Trainer trainer({.run = run_,
                     .engine = engine_,
                     .telemetry = listeners_.telemetry,
                     .page = world_.status_page(),
                     .train_data = *train_data_,
                     .validation_data = held_out_.get(),
                     .vocabulary = checked_.vocabulary,
                     .memory = memory_.table,
                     .writer = writer_ ? &*writer_ : nullptr,
                     .state = origin_.state,
                     .rank = world_.rank()});
    if (origin_.state.step < run_.trainer.max_steps)
      observe::log_info(fmt::format("step {} begins, {} after the start", origin_.state.step,
                                    format_duration(monotonic_seconds() - begin_)));
    Summary summary = trainer.run();
    listeners_.telemetry.emit(
        Event{.name = event::kJobTerminated, .step = summary.steps_done, .reason = summary.stop_reason});
    listeners_.finish();
    return summary;
  }

  // Where it stayed it would count as newer than all that is saved from now on.
  void set_given_up_aside() {
    std::vector<std::string> lines;
    if (world_.rank() % run_.trainer.devices == 0)
      lines = checkpoint::remove_given_up(tiers_.on_node(), identity_.id, checked_.lineage);
    if (chief_) {
      try {
        checkpoint::Store store(tiers_.persistent);
        store.set_fence(fence());
        for (std::string& line : store.set_given_up_aside(identity_.id, checked_.lineage))
          lines.push_back(std::move(line));
      } catch (const Error& error) {
        lines.push_back(fmt::format("{} stays as it is: {}", tiers_.persistent.string(), error.what()));
      }
    }
    for (const std::string& line : lines) observe::log_warning("given up: " + line);
  }

  // A generation that the run has gone on without commits nothing.
  checkpoint::Fence fence() const {
    if (!identity_.has_roster) return {};
    return
        [directory = run_path(run_), generation = identity_.generation] { refuse_superseded(directory, generation); };
  }

  CheckpointSearch::Options search_options(checkpoint::RemoteHolders* holders) {
    const bool owns_checkpoints = run_.exp_manager.checkpoint_callback_params.dirpath.empty();
    return {.tiers = tiers_,
            .run_id = identity_.id,
            .run_name = run_path(run_).string(),
            .owns_persistent = identity_.resumes && owns_checkpoints,
            .lost_identity = identity_.is_guess ? starts_file(run_) : "",
            .world = world_,
            .ranks_per_node = static_cast<int>(run_.trainer.devices),
            .peers = peers_ ? &*peers_ : nullptr,
            .deadline = run_.trainer.communication_timeout,
            .lineage = checked_.lineage,
            .holders = holders};
  }

  void open_writer() {
    std::string& digests = origin_.state.extra[checkpoint::kTokenizerDigests];
    digests = from_first(talk_, [&] { return keep_tokenizer(run_, tiers_, digests); });
    if (digests.empty()) origin_.state.extra.erase(checkpoint::kTokenizerDigests);
    writer_.emplace(CheckpointWriter::Options{.run = run_,
                                              .tiers = tiers_,
                                              .identity = identity_,
                                              .state = state_,
                                              .talk = talk_,
                                              .world = world_,
                                              .peers = peers_ ? &*peers_ : nullptr,
                                              .loaded_step = loaded_step_,
                                              .fence = fence()});
  }

  const double begin_ = monotonic_seconds();
  const config::Run& run_;
  const Checked& checked_;
  comm::World& world_;
  std::optional<Chief>& chief_;
  Listeners& listeners_;
  plan::RankMemory memory_;
  engine::Engine engine_;
  engine::RankTalk& talk_;
  RankState state_;
  RunIdentity identity_;
  const Tiers& tiers_;
  std::optional<File> checkpoints_lock_;
  std::optional<checkpoint::Peers> peers_;
  Origin origin_;
  std::optional<int64_t> loaded_step_;
  std::unique_ptr<data::Dataset> train_data_;
  std::unique_ptr<data::Dataset> held_out_;
  std::optional<CheckpointWriter> writer_;
};

}  // namespace

Summary train(const config::Run& run, const config::LoadReport& report, comm::World& world,
              const StartOptions& options) {
  plan::check_ranks(run, world.size());
  for (const std::string& failpoint : run.failpoints) arm_failpoint(failpoint);
  require_files(run);
  const data::Vocabulary vocabulary = data::vocabulary_of(run.model.tokenizer);
  plan::check_layout(run, vocabulary.size);
  const Tiers tiers = options.fleet ? tiers_of(run, options.fleet->node) : tiers_of(run, world.rank());
  check_device(run, plan::stage_request(run, vocabulary.size), tiers);
  // Datasets are opened first, so that a bad one leaves no run directory behind.
  Checked checked{run, vocabulary, identify_data(run.model.data), options, tiers};
  if (options.fleet) take_word_of_monitor(*options.fleet, checked);
  data::check_tokenizer_of_data(run.model.data, run.model.tokenizer);

  std::optional<Chief> chief;
  if (world.rank() == 0) chief.emplace(checked, report);
  Listeners listeners;
  Summary summary;
  try {
    summary = Session(checked, world, chief, listeners).run();
  } catch (const std::exception& error) {
    record_failure(error, listeners, chief);
    throw;
  }
  if (!chief) return summary;
  write_report(chief->directory);
  std::cout << describe(summary, run, chief->directory) << std::flush;
  return summary;
}

}  // namespace megalith::train
