#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "checkpoint/safetensors.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "train/inference.h"

namespace megalith::cli {

namespace {

struct Options {
  std::string checkpoint;
  std::vector<std::string> overrides;
  bool greedy = false;
  std::string logits;
  train::GenerateOptions generate;
};

int write_logits(checkpoint::Loaded& checkpoint, const config::Run& run, const Options& options) {
  train::PromptLogits read = train::prompt_logits(checkpoint, run, options.generate.prompt);
  const auto tokens = static_cast<int64_t>(read.tokens.size());
  const std::vector<checkpoint::TensorView> tensors{
      {.name = "logits", .tensor = Tensor(read.logits.data(), DType::f32, {tokens, read.vocabulary})},
      {.name = "tokens", .tensor = Tensor(read.tokens.data(), DType::i32, {tokens})}};
  File file = File::create_new(options.logits);
  checkpoint::write_safetensors(file, tensors);
  std::cout << fmt::format("{}: logits of {} tokens over a vocabulary of {}\n", options.logits, tokens,
                           read.vocabulary);
  return kExitComplete;
}

int run_generate(Options options) {
  if (options.greedy) options.generate.temperature = 0.0;
  checkpoint::Loaded checkpoint = train::open_checkpoint(options.checkpoint);
  const config::Run run = train::config_of(checkpoint, options.overrides);
  if (!options.logits.empty()) return write_logits(checkpoint, run, options);
  std::cout << options.generate.prompt << std::flush;
  const train::Generation result = train::generate(checkpoint, run, options.generate,
                                                   [](std::string_view text) { std::cout << text << std::flush; });
  std::cout << std::endl;
  std::cerr << fmt::format("[{} tokens, {:.1f} tokens/s]\n", result.tokens,
                           result.seconds > 0.0 ? static_cast<double>(result.tokens) / result.seconds : 0.0);
  return kExitComplete;
}

}  // namespace

void add_generate(CLI::App& program, Action& run) {
  CLI::App* verb = program.add_subcommand(
      "generate",
      "Write text with a trained model.\n\n"
      "  megalith generate --checkpoint runs/demo --prompt \"In the beginning\"\n"
      "  megalith generate --checkpoint runs/demo/checkpoints --prompt \"And\" --temperature 0.8 --top-k 50 --seed 7\n"
      "  megalith generate --checkpoint runs/demo --prompt \"And\" --greedy --max-tokens 100\n"
      "  megalith generate --checkpoint runs/demo --prompt \"And\" --logits logits.safetensors");
  const auto options = std::make_shared<Options>();
  verb->add_option("--checkpoint", options->checkpoint, "a run, its checkpoints directory, or one step in it")
      ->required();
  verb->add_option("--prompt", options->generate.prompt, "the text to continue");
  verb->add_option("--max-tokens", options->generate.max_tokens, "how many tokens at most")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--temperature", options->generate.temperature, "below 1: safer; above: wilder; 0: greedy")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--top-k", options->generate.top_k, "choose among the k likeliest tokens; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--top-p", options->generate.top_p,
                   "choose among the likeliest tokens that make up this probability")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb->add_option("--seed", options->generate.seed, "the same seed writes the same text")->capture_default_str();
  verb->add_option("--logits", options->logits,
                   "write no text, but what the model says after each token of the prompt, to this safetensors file: "
                   "tokens (n) and logits (n, vocabulary)");
  verb->add_flag("--greedy", options->greedy, "always the likeliest token");
  verb->add_option("overrides", options->overrides, "key=value, changes to the config the model was trained with");
  verb->callback([options, &run] { run = [options] { return run_generate(*options); }; });
}

}  // namespace megalith::cli
