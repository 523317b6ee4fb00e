#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>

#include "checkpoint/hugging_face/hugging_face.h"
#include "cli/accepts.h"
#include "cli/verbs.h"
#include "core/clock.h"
#include "core/words.h"
#include "plan/memory_table.h"
#include "train/inference/inference.h"

namespace megalith::cli {

namespace {

constexpr const char* kHuggingFace = "hugging-face";
constexpr const char* kMegalith = "megalith";

struct Options {
  std::string source;
  std::string target;
  std::string output;
  std::string dtype;  // empty: as it is
  checkpoint::ExportOptions exported;
  std::vector<std::string> overrides;
};

checkpoint::Converted convert(const Options& options) {
  std::optional<DType> dtype;
  if (!options.dtype.empty()) dtype = options.dtype == "bf16" ? DType::bf16 : DType::f32;
  if (options.target == kMegalith) {
    return checkpoint::import_hugging_face(options.source, options.output,
                                           {.dtype = dtype, .overrides = options.overrides});
  }
  checkpoint::Loaded loaded = train::open_checkpoint(options.source);
  const config::Run run = train::config_of(loaded, options.overrides);
  checkpoint::ExportOptions exported = options.exported;
  exported.dtype = dtype;
  return checkpoint::export_hugging_face(loaded, run, options.output, exported);
}

int run_convert(const Options& options) {
  const double begin = monotonic_seconds();
  const checkpoint::Converted result = convert(options);
  const double seconds = monotonic_seconds() - begin;
  const bool to_megalith = options.target == kMegalith;
  std::cout << fmt::format("{}: a {} of {} parameters in {} ({} in {:.2f} s, {:.2f} GB/s), {} {} file{}\n",
                           options.output, checkpoint::names_of(result.family).model_type, result.parameters,
                           name_of(result.dtype), bytes_in_words(result.bytes), seconds,
                           static_cast<double>(result.bytes) / 1e9 / std::max(seconds, 1e-9),
                           to_megalith ? "from" : "in", result.files, result.files == 1 ? "" : "s");
  std::cout << fmt::format("wrote {}\n", fmt::join(result.written, ", "));
  for (const std::string& note : result.notes) std::cout << "note: " << note << '\n';
  return kExitComplete;
}

}  // namespace

void add_checkpoint_convert(CLI::App& checkpoint, Action& run) {
  CLI::App* verb = checkpoint.add_subcommand(
      "convert",
      "Weights to and from the directories of Hugging Face transformers: GPT-2 and Llama.\n\n"
      "  megalith checkpoint convert runs/demo --to hugging-face --output exported\n"
      "  megalith checkpoint convert runs/mine/checkpoints/step-00000100 --to hugging-face --output exported --dtype "
      "f32\n"
      "  megalith checkpoint convert Llama-3.2-1B --to megalith --output imported model.encoder_seq_length=4096\n"
      "  megalith generate --checkpoint imported --prompt \"Once\"\n"
      "  megalith train -c imported/recipe.yaml 'model.data.data_prefix=[data/my_text_document]'");
  const auto options = std::make_shared<Options>();
  verb->add_option("source", options->source,
                   "to hugging-face: a run, its checkpoints directory, or one step in it; to megalith: a directory "
                   "with config.json and safetensors files")
      ->required();
  verb->add_option("--to", options->target, "the format to write")
      ->required()
      ->check(one_of({kHuggingFace, kMegalith}));
  verb->add_option("--output", options->output, "the directory to make; nothing is overwritten")->required();
  verb->add_option(
          "--dtype", options->dtype,
          "of the weights; f32 takes the master weights where there are some; without it, as the source has them")
      ->check(one_of({"f32", "bf16"}));
  verb->add_option("--max-shard-size", options->exported.max_shard_bytes,
                   "of a safetensors file; a single parameter may have more")
      ->type_name("SIZE")
      ->transform(size_in_bytes())
      ->default_str("5GB");
  verb->add_option("overrides", options->overrides, "key=value, changes to the config of the model");
  verb->callback([options, &run] { run = [options] { return run_convert(*options); }; });
}

}  // namespace megalith::cli
