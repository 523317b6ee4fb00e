#include "train/run/checkpoint_writer.h"

#include <algorithm>
#include <utility>

#include "config/derived.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/event_names.h"
#include "core/metric_names.h"
#include "core/process/host_memory.h"
#include "core/thread_pool.h"
#include "core/words.h"
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

// At the start, since a run that is complete saves no more.
void tidy_up(const checkpoint::Store& store) {
  try {
    store.empty_trash();
    store.catch_up_tracker();
  } catch (const std::exception& error) {
    observe::log_warning(fmt::format("what a crash has left among the checkpoints stays: {}", error.what()));
  }
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
      rank_(options.world.rank()),
      ranks_per_node_(options.run.trainer.devices),
      is_first_(rank_ == 0),
      loaded_step_(options.loaded_step.value_or(-1)),
      protected_step_(loaded_step_) {
  const checkpoint::Part place{.rank = options.world.rank(), .ranks = options.world.size()};
  if (is_first_) tidy_up(store_);
  open_memory(options);
  const config::Trainer& trainer = options.run.trainer;
  if (options_.monitor == metric::kValidationLoss &&
      (trainer.val_check_interval == 0 || trainer.limit_val_batches == 0))
    observe::log_warning("there is no validation, and so no val_loss to keep checkpoints by: the newest are kept");
  saver_.emplace(
      checkpoint::Saver::Options{.place = place,
                                 .generation = options.identity.start(),
                                 .board = &options.world.board(),
                                 .deadline = options.run.trainer.communication_timeout,
                                 .persistent = options.tiers.persistent,
                                 .persistent_keep = options_.save_top_k,
                                 .ranking = {.by = options_.monitor, .largest = options_.mode == config::Best::max},
                                 .fence = options.fence,
                                 .local = options.tiers.local,
                                 .local_keep = options_.local_save_top_k,
                                 .memory = memory_ ? options.tiers.memory : std::filesystem::path(),
                                 .copies = peer_copies(options, place),
                                 .threads = saver_threads(options.run.trainer),
                                 .page = &options.world.status_page()});
}

void CheckpointWriter::open_memory(const Options& options) {
  const std::filesystem::path& directory = options.tiers.memory;
  if (directory.empty()) return;
  try {
    memory_.emplace(directory, options.identity.has_roster);
    images_.emplace(directory);
    image_steps_ = images_->steps_of(rank_, run_id_);
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
  // The image that the run goes on from is needed until the next one is whole.
  const bool spares_first = wants_two_images() && image_steps_[0] >= 0 && image_steps_[0] == protected_step_ &&
                            why_no_room(1, size_if_there(images_->shard_of(rank_, 0))).empty();
  turns_ = {spares_first ? 1 : 0};
  try {
    state_.prepare_snapshots(images_ ? images_->shard_of(rank_, turns_[0]) : std::filesystem::path());
    if (const std::string& why_not = state_.snapshot().why_not_shared(); !why_not.empty()) {
      warn_of_memory(why_not);
      images_.reset();
    }
  } catch (const Error& error) {
    observe::log_error(fmt::format("there is no memory for a copy of the state: {}", error.what()));
    failed = true;
  }
  is_prepared_ = !talk_.any_rank(failed);
  return is_prepared_;
}

std::string CheckpointWriter::why_no_room(int64_t image, int64_t bytes) const {
  const std::optional<HostMemory> memory = host_memory();
  if (!memory) return {};
  const int64_t there = std::max<int64_t>(0, size_if_there(images_->shard_of(rank_, image)));
  const int64_t wanted = std::max<int64_t>(0, bytes - there) * ranks_per_node_;
  // The other half is for what reads ahead and writes behind.
  if (wanted <= memory->available / 2) return {};
  return fmt::format("{} more would be needed here, {} are free ({})", bytes_in_words(wanted),
                     bytes_in_words(memory->available), memory->source);
}

// With the second snapshot, since the first overwrites nothing.
void CheckpointWriter::open_second_image() {
  if (second_was_tried_ || begun_step_ < 0 || !wants_two_images()) return;
  const int64_t image = 1 - turns_[0];
  if (protected_step_ >= 0 && image_steps_[static_cast<size_t>(image)] == protected_step_) return;
  second_was_tried_ = true;
  std::string why_not = why_no_room(image, state_.snapshot().image().bytes());
  try {
    if (why_not.empty()) state_.snapshot().add_image(images_->shard_of(rank_, image));
  } catch (const Error& error) {
    why_not = error.what();
  }
  if (why_not.empty()) {
    turns_.push_back(image);
    return observe::log_info(fmt::format("two copies of the state are kept in memory by turns, of {} each",
                                         bytes_in_words(state_.snapshot().image().bytes())));
  }
  observe::log_info(
      fmt::format("one copy of the state is kept in memory, not two by turns: a node that is lost while it is "
                  "overwritten costs that step; {}",
                  why_not));
}

size_t CheckpointWriter::next_turn() const {
  const auto holds_protected = [&](int64_t image) {
    return protected_step_ >= 0 && image_steps_[static_cast<size_t>(image)] == protected_step_;
  };
  return turns_.size() > 1 && holds_protected(turns_[0]) ? 1 : 0;
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
  open_second_image();
  const size_t turn = next_turn();
  saver_->revoke_memory(turns_[turn]);
  if (!image_steps_.empty()) image_steps_[static_cast<size_t>(turns_[turn])] = state.step;
  state_.snapshot().turn_to(turn);
  state_.take_snapshot();
  begun_step_ = state.step;
  begun_persistent_ = to_persistent;
  if (to_persistent) last_save_ = monotonic_seconds();
  saver_->begin({.state = state,
                 .image = &state_.snapshot().image(),
                 .memory_image = turns_[turn],
                 .finish_image = [snapshot = &state_.snapshot()](ThreadPool& pool) { snapshot->finish(pool); },
                 .to_persistent = to_persistent,
                 .to_local = to_local,
                 .protected_step = protected_step_});
}

void CheckpointWriter::save(const checkpoint::RunState& state, bool late, Telemetry& telemetry) {
  const bool may_skip = options_.late_save == config::LateSave::skip;
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
    // A local save of this very step does not count.
    complete_step_ = -1;
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
