#include "train/checkpoint_writer.h"

#include "core/error.h"
#include "observe/log_files.h"

namespace megalith::train {

namespace {
void warn_of_memory(const std::string& why_not) {
  observe::log_warning(fmt::format("copies of the state do not outlive this process: {}", why_not));
}
}  // namespace

CheckpointWriter::CheckpointWriter(const config::Run& run, const Tiers& tiers, const RunIdentity& identity,
                                   Engine& engine, comm::World* world)
    : options_(run.exp_manager.checkpoint_callback_params),
      engine_(engine),
      is_first_(world == nullptr || world->rank() == 0) {
  const checkpoint::Part place{.rank = world == nullptr ? 0 : world->rank(),
                               .ranks = world == nullptr ? 1 : world->size()};
  if (!tiers.memory.empty()) {
    try {
      memory_.emplace(tiers.memory);
      memory_file_ = checkpoint::MemoryParts(tiers.memory).shard_of(place.rank);
    } catch (const Error& error) {
      warn_of_memory(error.what());
    }
  }
  saver_.emplace(checkpoint::Saver::Options{.place = place,
                                            .generation = identity.generation + 1,
                                            .board = world == nullptr ? nullptr : &world->board(),
                                            .deadline = run.trainer.communication_timeout,
                                            .persistent = tiers.persistent,
                                            .persistent_keep = options_.save_top_k,
                                            .local = tiers.local,
                                            .local_keep = options_.local_save_top_k,
                                            .memory = memory_ ? tiers.memory : std::filesystem::path()});
}

// Not before it is needed: so much memory takes seconds.
bool CheckpointWriter::prepare() {
  if (is_prepared_) return true;
  bool failed = false;
  try {
    engine_.prepare_snapshots(memory_file_);
    if (const std::string& why_not = engine_.snapshot().why_not_shared(); !why_not.empty()) warn_of_memory(why_not);
  } catch (const Error& error) {
    observe::log_error(fmt::format("there is no memory for a copy of the state: {}", error.what()));
    failed = true;
  }
  is_prepared_ = !engine_.is_so_somewhere(failed);
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

bool CheckpointWriter::make_way(bool may_skip, Telemetry& telemetry) {
  if (may_skip && engine_.is_so_somewhere(saver_->busy())) return false;
  saver_->wait();
  report(telemetry);
  const bool failed = engine_.is_so_somewhere(failed_);
  if (!failed) complete_step_ = begun_step_;
  return true;
}

void CheckpointWriter::begin(const checkpoint::RunState& state, bool to_persistent) {
  saver_->revoke_memory();
  engine_.take_snapshot();
  begun_step_ = state.step;
  begun_persistent_ = to_persistent;
  saver_->begin({.state = state,
                 .image = &engine_.snapshot().image(),
                 .finish_image = [snapshot = &engine_.snapshot()] { snapshot->finish(); },
                 .to_persistent = to_persistent,
                 .to_local = local_due(state.step),
                 .protected_step = complete_step_});
}

void CheckpointWriter::save(const checkpoint::RunState& state, Telemetry& telemetry) {
  const bool may_skip = options_.late_save == "skip";
  if (!make_way(may_skip, telemetry)) {
    observe::log_warning(
        fmt::format("checkpoint of step {} is left out: the one before is still being written", state.step));
    return;
  }
  if (!prepare()) return;
  begin(state, persistent_due(state.step));
  if (options_.async_save) return;
  saver_->wait();
  report(telemetry);
}

void CheckpointWriter::save_at_end(const checkpoint::RunState& state, Telemetry& telemetry) {
  make_way(false, telemetry);
  if (begun_step_ != state.step || !begun_persistent_ || complete_step_ != state.step) {
    if (prepare()) {
      begin(state, true);
      make_way(false, telemetry);
    }
    if (complete_step_ != state.step) fail(ErrorKind::io, "the checkpoint of step {} could not be saved", state.step);
  }
  saver_->remove_memory();
}

void CheckpointWriter::report(Telemetry& telemetry) {
  const std::optional<checkpoint::Saver::Outcome> outcome = saver_->take_outcome();
  if (!outcome) return;
  failed_ = !outcome->failure.empty();
  if (failed_) {
    observe::log_error(fmt::format("checkpoint of step {} failed: {}", outcome->step, outcome->failure));
    telemetry.emit(Event{.name = "checkpoint_failed", .step = outcome->step, .reason = outcome->failure});
    return;
  }
  if (!is_first_) return;
  for (const std::string& warning : outcome->result.warnings) observe::log_warning(warning);
  Event saved{.name = "checkpoint_saved", .step = outcome->step, .duration = outcome->seconds};
  if (outcome->persistent) {
    observe::log_info(fmt::format("checkpoint of step {} is in {}", outcome->step, outcome->result.path.string()));
    saved.fields.emplace_back("bytes", outcome->result.bytes);
  }
  saved.fields.emplace_back("tier", std::string(outcome->persistent ? "persistent" : "local"));
  telemetry.emit(saved);
}

}  // namespace megalith::train
