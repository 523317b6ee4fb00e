#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/accepts.h"
#include "cli/report/report_verbs.h"
#include "cli/report/training_columns.h"

namespace megalith::cli {

namespace {

struct Options {
  TrainingFlags flags;
  std::string format = "table";
};

int run_training(const Options& options) {
  const TrainingColumns columns = make_training_columns(options.flags);
  if (options.format == "json") {
    std::cout << observe::training_json(columns.inputs).dump(2) << '\n';
  } else if (options.format == "csv") {
    std::cout << observe::training_csv(columns.inputs);
  } else {
    std::cout << observe::training_text(columns.inputs);
  }
  for (const std::string& note : columns.notes) std::cerr << "note: " << note << '\n';
  return kExitComplete;
}

void add_what_is_measured(CLI::App& verb, TrainingFlags& flags) {
  verb.add_option("--file,file", flags.files, "DLLogger files, console logs of NeMo or Megatron, or run directories");
  verb.add_option("--step_time", flags.step_times, "without a file: seconds of a step")->check(above(0));
  verb.add_option("--start_step", flags.start_step, "first step to average")->capture_default_str();
  verb.add_option("--end_step", flags.end_step, "last step to average, included")->capture_default_str();
}

void add_what_it_means(CLI::App& verb, TrainingFlags& flags) {
  verb.add_option("--batch_size", flags.batch_sizes, "global batch size in samples")->check(at_least(1));
  verb.add_option("--num_accelerators", flags.accelerators, "how many GPUs or TPUs")->check(at_least(1));
  verb.add_option("--sequence_length", flags.sequence_lengths, "tokens of a sample")->check(at_least(1));
  verb.add_option("--tokens", flags.tokens, "how many tokens to train for")->check(above(0))->capture_default_str();
  verb.add_option("--model_type", flags.model_type,
                  "a model of Google's table of FLOPs: gpt3-175b, llama3.1-405b, ...");
  verb.add_option("--model_flops", flags.model_flops,
                  "FLOPs of one sample, forward and backward; wins over --model_type")
      ->check(above(0));
  verb.add_option("--accelerator_type", flags.accelerator_type,
                  "an accelerator of Google's table of peaks: b200, h100, h200, a100, v5e, v5p");
  verb.add_option("--max_flops", flags.max_flops, "peak in TFLOPS; wins over --accelerator_type")->check(above(0));
  verb.add_option("--precision", flags.precision, "whose peak")->check(one_of({"bf16", "fp8"}))->capture_default_str();
}

}  // namespace

void add_report_training(CLI::App& report, Action& run) {
  CLI::App* verb = report.add_subcommand(
      "training",
      "Step time, TFLOPS, MFU, tokens/s and time to train, from logs or from a step time.\n\n"
      "  megalith report training --file dllogger.json --batch_size 2048 --num_accelerators 256 \\\n"
      "    --model_type gpt3-175b --accelerator_type h100 --precision fp8\n"
      "  megalith report training runs/a runs/b --accelerator_type h200 --format csv\n"
      "  megalith report training --step_time 8.91 8.95 --batch_size 256 512 --num_accelerators 128 256 \\\n"
      "    --sequence_length 2048 --tokens 1e12 --model_flops 2.2e15 --max_flops 989\n\n"
      "Flags and the first three lines are those of Google's training_metrics tool. Lists take one value for all "
      "columns\n"
      "or one for each. docs/metrics.md has every formula.");
  const auto options = std::make_shared<Options>();
  add_what_is_measured(*verb, options->flags);
  add_what_it_means(*verb, options->flags);
  verb->add_option("--format", options->format, "how to print it")
      ->check(one_of({"table", "csv", "json"}))
      ->capture_default_str();
  verb->callback([options, &run] { run = [options] { return run_training(*options); }; });
}

}  // namespace megalith::cli
