#include "train/trainer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/derived.h"
#include "core/clock.h"
#include "core/event_names.h"
#include "core/metric_names.h"
#include "core/process/failpoint.h"
#include "core/trace.h"
#include "core/words.h"
#include "observe/sinks/log_files.h"
#include "optim/lr_schedule.h"
#include "train/batches.h"

namespace megalith::train {

namespace {
data::BatcherOptions training_batches(const config::Run& run, const checkpoint::RunState& state,
                                      const data::Vocabulary& vocabulary, const engine::Engine& engine) {
  data::BatcherOptions options = batcher_options(run, vocabulary, engine);
  options.ramp.emplace(run.model);
  options.consumed_samples = state.consumed_samples;
  options.read_ahead_until = options.ramp->consumed_after(state.consumed_samples, run.trainer.max_steps - state.step);
  return options;
}
}  // namespace

Trainer::Trainer(const Parts& parts)
    : parts_(parts),
      run_(parts.run),
      engine_(parts.engine),
      telemetry_(parts.telemetry),
      page_(parts.page),
      state_(parts.state),
      batcher_(parts.train_data, training_batches(parts.run, parts.state, parts.vocabulary, parts.engine)),
      metrics_(parts.run, {.padded_vocabulary = parts.engine.options().stage.config.padded_vocabulary,
                           .samples_in_dataset = parts.train_data.size(),
                           .peak_tflops = peak_tflops_of(parts.engine.options()),
                           .memory = parts.memory}),
      stop_(parts.run.trainer.max_time.empty()
                ? 0.0
                : static_cast<double>(config::parse_max_time(parts.run.trainer.max_time)),
            parts.page),
      profile_(parts.run.model.nsys_profile, parts.rank) {}

Summary Trainer::run() {
  summary_.first_step = state_.step;
  const int64_t consumed_before = state_.consumed_samples;
  try {
    run_steps();
  } catch (const Error& error) {
    // A GPU tells of an error when the host next asks it something: at this step or the one before.
    if (error.kind() != ErrorKind::device) throw;
    throw error.reworded(fmt::format("step {}: {}", state_.step, error.what()));
  }
  summary_.stop_reason = stop_agreed_ && stop_.reason().empty() ? "another rank was asked to stop" : stop_.reason();
  summary_.steps_done = state_.step;
  summary_.ending = state_.step < run_.trainer.max_steps ? Ending::stopped_early : Ending::complete;
  summary_.tokens = (state_.consumed_samples - consumed_before) * engine_.options().stage.length;
  if (parts_.writer != nullptr) save_at_end();
  return summary_;
}

void Trainer::run_steps() {
  mark_ = monotonic_seconds();
  while (state_.step < run_.trainer.max_steps && !should_stop()) {
    // While the device computes a step, the host prepares it the next one and reports the one before.
    const Launched launched = launch();
    if (launched_) report(*launched_, 1);
    launched_ = launched;
    state_.consumed_samples = launched.consumed_samples;
    ++state_.step;
    if (!engine_.runs_ahead()) settle();
    pass_failpoint("train.step");

    if (validation_due()) validate();
    if (parts_.writer == nullptr) continue;
    parts_.writer->report(telemetry_);
    if (save_agreed_ || parts_.writer->is_due(state_.step)) save();
  }
  settle();
}

Trainer::Launched Trainer::launch() {
  page_.begin_step(state_.step);
  set_failpoint_step(state_.step);
  profile_.before_step(state_.step);
  engine_.set_recording(!profile_.is_open());
  const TraceRange range("step", state_.step);
  const data::StepBatch batch = batcher_.next();
  const double rate = optim::learning_rate(run_.model.optim, state_.step);
  const engine::StepRequests requests{.stop = !stop_.reason().empty(),
                                      .save = parts_.writer != nullptr && parts_.writer->is_late()};
  engine_.run_step({.step = state_.step, .weight = batch.total_weight, .learning_rate = rate, .requests = requests},
                   batch.micro_batches);
  return {.step = state_.step,
          .samples_before = state_.consumed_samples,
          .consumed_samples = batcher_.consumed_samples(),
          .learning_rate = rate,
          .data_wait = batch.wait_seconds};
}

void Trainer::report(const Launched& launched, int steps_back) {
  page_.enter(Section::wait);
  const engine::StepResult result = engine_.result_of_step(steps_back);
  const double now = monotonic_seconds();
  const double seconds = now - mark_;
  mark_ = now;
  telemetry_.emit(metrics_.of_step({.step = launched.step,
                                    .samples = launched.consumed_samples - launched.samples_before,
                                    .consumed_samples = launched.consumed_samples,
                                    .learning_rate = launched.learning_rate,
                                    .seconds = seconds,
                                    .data_wait = launched.data_wait,
                                    .checkpoint_stall = std::exchange(checkpoint_stall_, 0.0),
                                    .result = result}));
  summary_.train_seconds += seconds;
  summary_.train_loss = result.loss;
  stop_agreed_ = stop_agreed_ || result.stop_requested;
  save_agreed_ = save_agreed_ || result.save_requested;
  note_saturation(launched.step, result);
  act_on_non_finite(launched, result, steps_back);
}

void Trainer::note_saturation(int64_t step, const engine::StepResult& result) {
  if (result.saturated.size() <= most_saturated_) return;
  most_saturated_ = result.saturated.size();
  constexpr size_t kNamed = 8;
  const auto named = result.saturated.begin() + static_cast<std::ptrdiff_t>(std::min(kNamed, most_saturated_));
  observe::log_warning(fmt::format(
      "step {}: {} saturated, more than in any step before: {}{}", step, counted(result.saturations, "fp8 operand"),
      fmt::join(result.saturated.begin(), named, ", "), most_saturated_ > kNamed ? ", and others" : ""));
}

void Trainer::settle() {
  if (launched_) report(*launched_, 0);
  launched_.reset();
}

// Ranks stop together: what each was asked goes through the sums of a step.
bool Trainer::should_stop() const {
  return engine_.groups().world->is_alone() ? !stop_.reason().empty() : stop_agreed_;
}

bool Trainer::validation_due() const {
  if (parts_.validation_data == nullptr) return false;
  return state_.step % run_.trainer.val_check_interval == 0 || state_.step == run_.trainer.max_steps;
}

namespace {
std::string where_not_finite(const engine::UpdateResult& update) {
  return update.first_non_finite.empty() ? "something on another rank" : update.first_non_finite;
}
}  // namespace

void Trainer::act_on_non_finite(const Launched& launched, const engine::StepResult& result, int steps_back) {
  if (!result.update.skipped && std::isfinite(result.loss)) return;
  const int64_t step = launched.step;
  const std::string what = result.update.skipped ? fmt::format("step {}: {} is not finite (loss {})", step,
                                                               where_not_finite(result.update), result.loss)
                                                 : fmt::format("step {}: the loss is not finite", step);
  telemetry_.emit(Event{.name = event::kNonFinite, .step = step, .reason = what});
  if (run_.on_non_finite == config::OnNonFinite::stop) {
    const std::string saved = result.update.skipped ? save_good_weights(launched, steps_back) : "";
    throw Error(ErrorKind::non_finite,
                fmt::format("{}; the weights are those before this step{}. Lower model.optim.lr, look at the data, or "
                            "go on with resilience.on_non_finite=skip",
                            what, saved.empty() ? "" : ", saved in " + saved),
                {.parameter = result.update.parameter});
  }
  ++summary_.skipped_steps;
  observe::log_warning(what + "; the update was skipped");
}

std::string Trainer::save_good_weights(const Launched& failed, int steps_back) {
  if (parts_.writer == nullptr) return {};
  // On a GPU the next step is under way. With weights that are as bad it fails as well; else its update counts, and
  // the step that failed is one that was skipped.
  const bool unchanged = steps_back == 0 || engine_.result_of_step(0).update.skipped;
  state_.step = unchanged ? failed.step : failed.step + 1 + steps_back;
  state_.consumed_samples = unchanged ? failed.samples_before : batcher_.consumed_samples();
  if (state_.step == summary_.first_step) return {};
  try {
    save_at_end();
    return parts_.writer->path_of(state_.step).string();
  } catch (const Error& error) {
    observe::log_error(error.what());
    return {};
  }
}

// Broadcast by rank 0: the states of all ranks must be the same to the bit.
void Trainer::note_monitored(const char* name, double value) {
  if (run_.exp_manager.checkpoint_callback_params.monitor != name) return;
  state_.extra[name] = engine_.talk().broadcast(fmt::format("{}", value));
}

void Trainer::validate() {
  settle();
  page_.enter(Section::validate);
  Span span(telemetry_, event::kValidation, state_.step);
  data::BatcherOptions options = batcher_options(run_, parts_.vocabulary, engine_);
  options.read_ahead_until = run_.trainer.limit_val_batches * run_.model.global_batch_size;
  data::Batcher batcher(*parts_.validation_data, options);
  const double loss = mean_loss(engine_, batcher, run_.trainer.limit_val_batches);
  summary_.validation_loss = loss;
  note_monitored(metric::kValidationLoss, loss);
  span.add(metric::kValidationLoss, loss);
  telemetry_.emit(
      Metrics{.kind = metric::kValidation, .step = state_.step - 1, .values = {{metric::kValidationLoss, loss}}});
  mark_ = monotonic_seconds();
}

void Trainer::save() {
  settle();
  page_.enter(Section::save);
  pass_failpoint("train.save");
  const double begin = monotonic_seconds();
  if (summary_.train_loss) note_monitored(metric::kTrainLoss, *summary_.train_loss);
  {
    const Span span(telemetry_, event::kCheckpointSave, state_.step);
    parts_.writer->save(state_, std::exchange(save_agreed_, false), telemetry_);
  }
  mark_ = monotonic_seconds();
  checkpoint_stall_ += mark_ - begin;
}

void Trainer::save_at_end() {
  page_.enter(Section::save);
  if (summary_.train_loss) note_monitored(metric::kTrainLoss, *summary_.train_loss);
  const Span span(telemetry_, event::kCheckpointSave, state_.step);
  parts_.writer->save_at_end(state_, telemetry_);
}

}  // namespace megalith::train
