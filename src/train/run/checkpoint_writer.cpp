#include "train/run/checkpoint_writer.h"

#include <algorithm>
#include <utility>

#include "config/layout.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/event_names.h"
#include "core/metric_names.h"
#include "core/thread_pool.h"
#include "observe/sinks/log_files.h"

namespace megalith::train {

namespace {
void warn_of_memory(const std::string& why_not) {
  observe::log_warning(fmt::format("copies of the state do not outlive this process: {}", why_not));
}

// One is enough for small states; for a hundred gigabytes, which eight digest in seconds, it takes half a minute.
int saver_threads(const config::Trainer& trainer) {
  constexpr int64_t kMost = 8;
  return static_cast<int>(std::clamp<int64_t>(available_cores() / trainer.devices, 1, kMost));
}
}  // namespace

CheckpointWriter::CheckpointWriter(const Options& options)
    : options_(options.run.exp_manager.checkpoint_callback_params),
      store_(options.tiers.persistent),
      time_interval_(options_.train_time_interval.empty() ? 0.0
                                                          : config::parse_time_interval(options_.train_time_interval)),
      last_save_(monotonic_seconds()),
      run_id_(options.identity.id),
      state_(options.state),
      talk_(options.talk),
      is_first_(options.world.rank() == 0),
      loaded_step_(options.loaded_step.value_or(-1)),
      protected_step_(loaded_step_) {
  const checkpoint::Part place{.rank = options.world.rank(), .ranks = options.world.size()};
  open_memory(options.tiers, place.rank);
  const config::Trainer& trainer = options.run.trainer;
  if (options_.monitor == metric::kValidationLoss &&
      (trainer.val_check_interval == 0 || trainer.limit_val_batches == 0))
    observe::log_warning("there is no validation, and so no val_loss to keep checkpoints by: the newest are kept");
  saver_.emplace(checkpoint::Saver::Options{.place = place,
                                            .generation = options.identity.generation + 1,
                                            .board = &options.world.board(),
                                            .deadline = options.run.trainer.communication_timeout,
                                            .persistent = options.tiers.persistent,
                                            .persistent_keep = options_.save_top_k,
                                            .ranking = {.by = options_.monitor, .largest = options_.mode == "max"},
                                            .local = options.tiers.local,
                                            .local_keep = options_.local_save_top_k,
                                            .memory = memory_ ? options.tiers.memory : std::filesystem::path(),
                                            .copies = peer_copies(options, place),
                                            .threads = saver_threads(options.run.trainer)});
}

void CheckpointWriter::open_memory(const Tiers& tiers, int64_t rank) {
  if (tiers.memory.empty()) return;
  try {
    memory_.emplace(tiers.memory);
    memory_file_ = checkpoint::MemoryParts(tiers.memory).shard_of(rank);
  } catch (const Error& error) {
    warn_of_memory(error.what());
  }
}

// All ranks have them, or none.
std::optional<checkpoint::PeerCopies> CheckpointWriter::peer_copies(const Options& options,
                                                                    const checkpoint::Part& place) const {
  if (!options_.local_peer_copy) return std::nullopt;
  if (talk_.any_rank(!memory_)) {
    observe::log_warning("no copies are kept on other nodes: not every node has memory for them");
    return std::nullopt;
  }
  return checkpoint::PeerCopies({.directory = options.tiers.copies(),
                                 .place = place,
                                 .ranks_per_node = options.run.trainer.devices,
                                 .peers = options.peers});
}

// Not before it is needed: so much memory takes seconds.
bool CheckpointWriter::prepare() {
  if (is_prepared_) return true;
  bool failed = false;
  try {
    state_.prepare_snapshots(memory_file_);
    if (const std::string& why_not = state_.snapshot().why_not_shared(); !why_not.empty()) warn_of_memory(why_not);
  } catch (const Error& error) {
    observe::log_error(fmt::format("there is no memory for a copy of the state: {}", error.what()));
    failed = true;
  }
  is_prepared_ = !talk_.any_rank(failed);
  return is_prepared_;
}

bool CheckpointWriter::persistent_due(int64_t step) const {
  return options_.every_n_train_steps > 0 && step % options_.every_n_train_steps == 0;
}

bool CheckpointWriter::local_due(int64_t step) const {
  return options_.local_every_n_train_steps > 0 && step % options_.local_every_n_train_steps == 0;
}

bool CheckpointWriter::is_due(int64_t step) const {
  return persistent_due(step) || local_due(step);
}

bool CheckpointWriter::is_late() const {
  return is_first_ && time_interval_ > 0.0 && monotonic_seconds() - last_save_ >= time_interval_;
}

bool CheckpointWriter::is_there_already(int64_t step) const {
  if (step != loaded_step_) return false;
  bool is_there = false;
  if (is_first_) {
    try {
      is_there = store_.open(step).manifest().state.run_id == run_id_;
    } catch (const Error&) {
      // It came from the nodes, or from another run.
    }
  }
  return talk_.any_rank(is_there);
}

bool CheckpointWriter::make_way(bool may_skip, Telemetry& telemetry) {
  if (may_skip && talk_.any_rank(saver_->busy())) return false;
  saver_->wait();
  take_outcome(telemetry);
  const bool failed = talk_.any_rank(!failure_.empty());
  if (!failed) complete_step_ = begun_step_;
  if (complete_step_ >= 0) protected_step_ = complete_step_;
  return true;
}

void CheckpointWriter::begin(const checkpoint::RunState& state, bool to_persistent, bool to_local) {
  saver_->revoke_memory();
  state_.take_snapshot();
  begun_step_ = state.step;
  begun_persistent_ = to_persistent;
  if (to_persistent) last_save_ = monotonic_seconds();
  saver_->begin({.state = state,
                 .image = &state_.snapshot().image(),
                 .finish_image = [snapshot = &state_.snapshot()](ThreadPool& pool) { snapshot->finish(pool); },
                 .to_persistent = to_persistent,
                 .to_local = to_local,
                 .protected_step = protected_step_});
}

void CheckpointWriter::save(const checkpoint::RunState& state, bool late, Telemetry& telemetry) {
  const bool may_skip = options_.late_save == "skip";
  if (!make_way(may_skip, telemetry)) {
    observe::log_warning(
        fmt::format("checkpoint of step {} is left out: the one before is still being written", state.step));
    return;
  }
  say_failure();
  if (!prepare()) return;
  begin(state, late || persistent_due(state.step), local_due(state.step));
  if (options_.async_save) return;
  saver_->wait();
  report(telemetry);
}

void CheckpointWriter::save_at_end(const checkpoint::RunState& state, Telemetry& telemetry) {
  make_way(false, telemetry);
  const bool is_saved = begun_step_ == state.step && begun_persistent_ && complete_step_ == state.step;
  if (!is_saved && !is_there_already(state.step)) {
    // Of this very step it is tried again, and said only if that fails as well.
    if (begun_step_ == state.step) unsaid_.clear();
    say_failure();
    if (prepare()) {
      begin(state, true, false);
      make_way(false, telemetry);
    }
    if (complete_step_ != state.step) {
      fail(ErrorKind::io, "the checkpoint of step {} could not be saved{}", state.step,
           failure_.empty() ? "" : ": " + failure_);
    }
  }
  saver_->remove_memory();
}

void CheckpointWriter::report(Telemetry& telemetry) {
  take_outcome(telemetry);
  say_failure();
}

void CheckpointWriter::take_outcome(Telemetry& telemetry) {
  const std::optional<checkpoint::Saver::Outcome> outcome = saver_->take_outcome();
  if (!outcome) return;
  failure_ = outcome->failure;
  if (!failure_.empty()) {
    unsaid_ = fmt::format("checkpoint of step {} failed: {}", outcome->step, failure_);
    telemetry.emit(Event{.name = event::kCheckpointFailed, .step = outcome->step, .reason = failure_});
    return;
  }
  if (!is_first_) return;
  for (const std::string& warning : outcome->result.warnings) observe::log_warning(warning);
  Event saved{.name = event::kCheckpointSaved, .step = outcome->step, .duration = outcome->seconds};
  if (outcome->persistent) {
    observe::log_info(fmt::format("checkpoint of step {} is in {}", outcome->step, outcome->result.path.string()));
    saved.fields.emplace_back("bytes", outcome->result.bytes);
  }
  saved.fields.emplace_back("copy_seconds", state_.snapshot().copy_seconds());
  saved.fields.emplace_back("tier", std::string(outcome->persistent ? "persistent" : "local"));
  telemetry.emit(saved);
}

void CheckpointWriter::say_failure() {
  if (!unsaid_.empty()) observe::log_error(std::exchange(unsaid_, {}));
}

}  // namespace megalith::train
