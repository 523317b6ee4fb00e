#include "train/trainer.h"

#include <cmath>

#include "config/layout.h"
#include "core/clock.h"
#include "core/failpoint.h"
#include "observe/log_files.h"
#include "optim/lr_schedule.h"
#include "train/batches.h"

namespace megalith::train {

namespace {
data::BatcherOptions training_batches(const config::Run& run, const checkpoint::RunState& state,
                                      const data::Vocabulary& vocabulary) {
  data::BatcherOptions options = batcher_options(run, vocabulary);
  options.consumed_samples = state.consumed_samples;
  options.read_ahead_until =
      state.consumed_samples + (run.trainer.max_steps - state.step) * run.model.global_batch_size;
  return options;
}
}  // namespace

Trainer::Trainer(const Parts& parts)
    : parts_(parts),
      run_(parts.run),
      engine_(parts.engine),
      telemetry_(parts.telemetry),
      state_(parts.state),
      batcher_(parts.train_data, training_batches(parts.run, parts.state, parts.vocabulary)),
      schedule_(parallel::single_stage_schedule(batcher_.micro_batches())),
      metrics_(parts.run, parts.engine.options().model.padded_vocabulary, parts.train_data.size()),
      stop_(parts.run.trainer.max_time.empty()
                ? 0.0
                : static_cast<double>(config::parse_max_time(parts.run.trainer.max_time))) {}

Summary Trainer::run() {
  summary_.first_step = state_.step;
  while (state_.step < run_.trainer.max_steps && stop_.reason().empty()) {
    const double begin = monotonic_seconds();
    progress_.step = state_.step;
    const data::StepBatch batch = batcher_.next();
    const double rate = optim::learning_rate(run_.model.optim, state_.step);
    const StepResult result = run_step(engine_, schedule_, batch, state_.step, rate, progress_);
    const double seconds = monotonic_seconds() - begin;

    state_.consumed_samples = batcher_.consumed_samples();
    telemetry_.emit(metrics_.of_step({.step = state_.step,
                                      .consumed_samples = state_.consumed_samples,
                                      .learning_rate = rate,
                                      .seconds = seconds,
                                      .data_wait = batch.wait_seconds,
                                      .result = result}));
    summary_.train_seconds += seconds;
    summary_.train_loss = result.loss;
    act_on_non_finite(result);
    ++state_.step;
    pass_failpoint("train.step");

    if (validation_due()) validate();
    if (save_due()) save(false);
  }
  summary_.stop_reason = stop_.reason();
  summary_.steps_done = state_.step;
  summary_.ending = state_.step < run_.trainer.max_steps ? Ending::stopped_early : Ending::complete;
  summary_.tokens = (state_.step - summary_.first_step) * run_.model.global_batch_size * engine_.options().length;
  if (parts_.store != nullptr && saved_step_ != state_.step) save(true);
  return summary_;
}

bool Trainer::validation_due() const {
  if (parts_.validation_data == nullptr) return false;
  return state_.step % run_.trainer.val_check_interval == 0 || state_.step == run_.trainer.max_steps;
}

bool Trainer::save_due() const {
  const int64_t interval = run_.exp_manager.checkpoint_callback_params.every_n_train_steps;
  return parts_.store != nullptr && interval > 0 && state_.step % interval == 0;
}

void Trainer::act_on_non_finite(const StepResult& result) {
  if (!result.update.skipped && std::isfinite(result.loss)) return;
  const std::string what = result.update.skipped ? fmt::format("step {}: the gradient of {} is not finite (loss {})",
                                                               state_.step, result.update.first_non_finite, result.loss)
                                                 : fmt::format("step {}: the loss is not finite", state_.step);
  telemetry_.emit(Event{.name = "non_finite", .step = state_.step, .reason = what});
  if (run_.on_non_finite == "stop") {
    fail(ErrorKind::internal,
         "{}; the weights are those before this step. Lower model.optim.lr, look at the data, or go on with "
         "resilience.on_non_finite=skip",
         what);
  }
  ++summary_.skipped_steps;
  observe::log_warning(what + "; the update was skipped");
}

void Trainer::validate() {
  Span span(telemetry_, "validation", state_.step);
  data::BatcherOptions options = batcher_options(run_, parts_.vocabulary);
  options.read_ahead_until = run_.trainer.limit_val_batches * run_.model.global_batch_size;
  data::Batcher batcher(*parts_.validation_data, options);
  const double loss = mean_loss(engine_, batcher, run_.trainer.limit_val_batches);
  summary_.validation_loss = loss;
  span.add("val_loss", loss);
  telemetry_.emit(Metrics{.kind = "validation", .step = state_.step - 1, .values = {{"val_loss", loss}}});
}

void Trainer::save(bool must_succeed) {
  Span span(telemetry_, "checkpoint_save", state_.step);
  try {
    const checkpoint::SaveResult result = parts_.store->save({.state = state_, .tensors = engine_.state()});
    for (const std::string& warning : result.warnings) observe::log_warning(warning);
    span.add("bytes", result.bytes);
    saved_step_ = state_.step;
    observe::log_info(fmt::format("checkpoint of step {} is in {}", state_.step, result.path.string()));
    telemetry_.emit(Event{.name = "checkpoint_saved", .step = state_.step});
  } catch (const Error& error) {
    span.set_reason(error.what());
    if (must_succeed) throw;
    observe::log_error(fmt::format("checkpoint of step {} failed, training goes on: {}", state_.step, error.what()));
  }
}

}  // namespace megalith::train
