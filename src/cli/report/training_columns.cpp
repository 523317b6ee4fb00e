#include "cli/report/training_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "config/derived.h"
#include "config/load.h"
#include "core/error.h"
#include "cost/flops.h"
#include "data/tokenizer/tokenizer.h"
#include "observe/logs/training_log.h"
#include "observe/report/google_tables.h"

namespace megalith::cli {

namespace {

namespace fs = std::filesystem;
using observe::TrainingInputs;
using observe::TrainingLog;

template <class Number>
std::optional<Number> value_for(const std::vector<Number>& values, size_t column, size_t columns, const char* flag) {
  if (values.empty()) return std::nullopt;
  if (values.size() == 1) return values[0];
  if (values.size() != columns)
    user_error("{} has {} values for {} columns; give one for all or one for each", flag, values.size(), columns);
  return values[column];
}

std::string list_models() {
  std::vector<std::string_view> names;
  for (const observe::GoogleModel& model : observe::google_models()) names.push_back(model.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string list_accelerators() {
  std::vector<std::string> texts;
  for (const observe::GoogleAccelerator& a : observe::google_accelerators()) {
    texts.push_back(a.fp8_tflops ? fmt::format("{} (bf16 {}, fp8 {})", a.name, a.bf16_tflops, *a.fp8_tflops)
                                 : fmt::format("{} (bf16 {})", a.name, a.bf16_tflops));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

void take_model(const TrainingFlags& flags, TrainingInputs& inputs) {
  if (flags.model_flops > 0.0) {
    inputs.model_flops = flags.model_flops;
    inputs.model_source = "--model_flops";
    return;
  }
  if (flags.model_type.empty()) return;
  for (const observe::GoogleModel& model : observe::google_models()) {
    if (model.name != flags.model_type) continue;
    inputs.model_flops = model.flops_per_sample;
    inputs.model_source = flags.model_type + " in Google's table";
    return;
  }
  user_error("--model_type '{}' is unknown; known are {}. For others give --model_flops", flags.model_type,
             list_models());
}

void take_peak(const TrainingFlags& flags, TrainingInputs& inputs) {
  if (flags.max_flops > 0.0) {
    inputs.peak_tflops = flags.max_flops;
    inputs.peak_source = "--max_flops";
    return;
  }
  if (flags.accelerator_type.empty()) return;
  for (const observe::GoogleAccelerator& accelerator : observe::google_accelerators()) {
    if (accelerator.name != flags.accelerator_type) continue;
    inputs.peak_tflops = flags.precision == "fp8" ? accelerator.fp8_tflops : accelerator.bf16_tflops;
    inputs.peak_source = fmt::format("{} {} in Google's table", flags.accelerator_type, flags.precision);
    if (inputs.peak_tflops) return;
    user_error("{} has no {} peak; known are {}. For others give --max_flops", flags.accelerator_type, flags.precision,
               list_accelerators());
  }
  user_error("--accelerator_type '{}' is unknown; known are {}. For others give --max_flops", flags.accelerator_type,
             list_accelerators());
}

// What a run directory knows of itself.
void take_config(const fs::path& hparams, TrainingInputs& inputs) {
  const config::Run run = config::load(std::vector<fs::path>{hparams}, {});
  if (!inputs.batch_size) inputs.batch_size = run.model.global_batch_size;
  if (!inputs.sequence_length) inputs.sequence_length = run.model.encoder_seq_length;
  if (!inputs.accelerators) inputs.accelerators = run.trainer.devices * run.trainer.num_nodes;
  if (inputs.model_flops) return;
  const int64_t vocabulary = data::vocabulary_of(run.model.tokenizer).size;
  const int64_t padded = config::padded_vocab(vocabulary, run.model.make_vocab_size_divisible_by);
  inputs.model_flops = cost::model_flops_per_sample(run.model, padded);
  inputs.causal_flops = cost::causal_flops_per_sample(run.model, padded);
  inputs.model_source = "the run's config, attention counted in full";
}

// Its events say which accelerators it had; a run on a CPU has no peak.
void take_peak_of_run(const fs::path& events, const fs::path& path, const TrainingLog& log, TrainingInputs& inputs) {
  if (inputs.peak_tflops || !fs::exists(events)) return;
  inputs.peak_tflops = path == events ? log.peak_tflops : observe::read_training_log(events).peak_tflops;
  if (inputs.peak_tflops) inputs.peak_source = "the run's accelerator";
}

fs::path find_log(const fs::path& given) {
  if (!fs::exists(given)) user_error("{}: no such file or directory", given.string());
  if (!fs::is_directory(given)) return given;
  for (const char* name : {"dllogger/rank-0/dllogger.json", "dllogger.json", "events.jsonl"}) {
    if (fs::exists(given / name)) return given / name;
  }
  user_error("{} is not a run directory: it holds neither dllogger/rank-0/dllogger.json nor events.jsonl",
             given.string());
}

void take_step_time(const TrainingFlags& flags, const fs::path& path, const TrainingLog& log, TrainingInputs& inputs) {
  if (log.steps.empty())
    user_error(
        "{} holds no step times: of {} lines none is a DLLogger record with 'train_step_timing in s', a progress "
        "line of NeMo or Megatron, or one of Megalith's events",
        path.string(), log.lines);
  const observe::StepTimeMean mean = observe::mean_step_time(log, flags.start_step, flags.end_step);
  const auto [lowest, highest] = std::minmax_element(log.steps.begin(), log.steps.end(),
                                                     [](const auto& a, const auto& b) { return a.step < b.step; });
  if (mean.records == 0)
    user_error(
        "{} holds the steps {} to {} ({} records of {}), none of them between {} and {}: choose others with "
        "--start_step and --end_step",
        path.string(), lowest->step, highest->step, log.steps.size(), name_of(log.kind), flags.start_step,
        flags.end_step);
  inputs.step_time = mean.seconds;
  inputs.averaged = {.log = std::string(name_of(log.kind)),
                     .first_step = std::max(flags.start_step, lowest->step),
                     .last_step = std::min(flags.end_step, highest->step),
                     .records = mean.records};
}

void check_complete(const TrainingInputs& inputs, bool of_run) {
  if (!inputs.batch_size) user_error("{} does not tell the global batch size: give --batch_size", inputs.name);
  if (!inputs.accelerators) user_error("{} does not tell how many accelerators: give --num_accelerators", inputs.name);
  if (!inputs.model_flops)
    user_error("Either the --model_type or --model_flops is needed; known types are {}", list_models());
  if (!inputs.peak_tflops && !of_run)
    user_error("Either the --accelerator_type or --max_flops is needed; known types are {}", list_accelerators());
}

std::vector<std::string> notes_on(const TrainingFlags& flags, const TrainingLog& log, const TrainingInputs& inputs) {
  std::vector<std::string> notes;
  if (log.fp8 && inputs.peak_tflops && flags.max_flops == 0.0 && flags.precision != "fp8")
    notes.push_back(
        fmt::format("{}: the run used fp8, its MFU here is against the bf16 peak; --precision fp8 takes the "
                    "other",
                    inputs.name));
  if (log.bad_lines > 0)
    notes.push_back(
        fmt::format("{}: {} of {} lines are torn or damaged and were left out", inputs.name, log.bad_lines, log.lines));
  if (!inputs.sequence_length)
    notes.push_back(fmt::format("{}: give --sequence_length for tokens/s and time to train", inputs.name));
  return notes;
}

TrainingInputs inputs_as_given(const TrainingFlags& flags, size_t column, size_t columns) {
  TrainingInputs inputs{.batch_size = value_for(flags.batch_sizes, column, columns, "--batch_size"),
                        .accelerators = value_for(flags.accelerators, column, columns, "--num_accelerators"),
                        .sequence_length = value_for(flags.sequence_lengths, column, columns, "--sequence_length"),
                        .tokens = flags.tokens};
  take_model(flags, inputs);
  take_peak(flags, inputs);
  return inputs;
}

void take_given_step_time(const TrainingFlags& flags, size_t column, size_t columns, TrainingInputs& inputs) {
  inputs.step_time = *value_for(flags.step_times, column, columns, "--step_time");
  inputs.name = inputs.accelerators ? fmt::format("{} accelerators", *inputs.accelerators) : "as given";
  if (!inputs.batch_size) user_error("--step_time needs --batch_size, the global batch size in samples");
}

std::vector<std::string> take_file(const TrainingFlags& flags, const fs::path& given, TrainingInputs& inputs) {
  inputs.name = given.string();
  const fs::path path = find_log(given);
  const TrainingLog log = observe::read_training_log(path);
  take_step_time(flags, path, log, inputs);
  if (!inputs.batch_size) inputs.batch_size = log.global_batch_size;
  if (!inputs.sequence_length) inputs.sequence_length = log.sequence_length;
  const bool of_run = fs::exists(given / "hparams.yaml");
  if (of_run) {
    take_config(given / "hparams.yaml", inputs);
    take_peak_of_run(given / "events.jsonl", path, log, inputs);
  }
  check_complete(inputs, of_run);
  return notes_on(flags, log, inputs);
}

size_t count_columns(const TrainingFlags& flags) {
  if (flags.files.empty() && flags.step_times.empty())
    user_error("give log files or run directories, or the step time itself with --step_time");
  if (!flags.files.empty() && !flags.step_times.empty())
    user_error("give either files or --step_time: with both it is not clear which time is meant");
  if (flags.start_step > flags.end_step)
    user_error("--start_step {} lies behind --end_step {}", flags.start_step, flags.end_step);
  return std::max(flags.files.size(), flags.step_times.size());
}

}  // namespace

TrainingColumns make_training_columns(const TrainingFlags& flags) {
  TrainingColumns columns;
  const size_t count = count_columns(flags);
  for (size_t i = 0; i < count; ++i) {
    TrainingInputs inputs = inputs_as_given(flags, i, count);
    if (flags.files.empty()) {
      take_given_step_time(flags, i, count, inputs);
    } else {
      const std::vector<std::string> notes = take_file(flags, flags.files[i], inputs);
      columns.notes.insert(columns.notes.end(), notes.begin(), notes.end());
    }
    columns.inputs.push_back(std::move(inputs));
  }
  return columns;
}

}  // namespace megalith::cli
