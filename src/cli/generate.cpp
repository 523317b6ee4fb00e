#include "train/inference/generate.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "checkpoint/format/safetensors.h"
#include "cli/accepts.h"
#include "cli/prompts.h"
#include "cli/verbs.h"
#include "core/clock.h"
#include "core/error.h"
#include "train/inference/inference.h"

namespace megalith::cli {

namespace {

struct Options {
  std::string checkpoint;
  std::vector<std::string> overrides;
  CLI::Option* prompt_given = nullptr;
  std::string prompt;
  std::string prompts_file;
  int64_t batch_size = 8;
  bool interactive = false;
  bool greedy = false;
  bool json = false;
  std::string logits;
  train::GenerateOptions generate;
};

void check(const Options& options) {
  train::check(options.generate);
  if (options.logits.empty()) return;
  if (!*options.prompt_given) user_error("--logits is for the tokens of a prompt: give --prompt TEXT");
  if (std::filesystem::exists(options.logits)) {
    user_error("{} is there already, and nothing is overwritten: give --logits another name", options.logits);
  }
}

std::vector<train::Prompt> prompts_of(const Options& options) {
  if (*options.prompt_given) return {{.text = options.prompt}};
  if (options.prompts_file.empty() && ::isatty(STDIN_FILENO) != 0) {
    user_error("no prompt: give --prompt TEXT, --prompts-file FILE or --interactive");
  }
  std::vector<train::Prompt> prompts;
  for (std::string& text : read_prompts(options.prompts_file.empty() ? "-" : options.prompts_file)) {
    prompts.push_back({.text = std::move(text), .number = std::ssize(prompts)});
  }
  return prompts;
}

int write_logits(train::TextModel& model, const Options& options) {
  train::PromptLogits read = train::prompt_logits(model, options.prompt);
  const auto tokens = std::ssize(read.tokens);
  const std::vector<checkpoint::TensorView> tensors{
      {.name = "logits", .tensor = Tensor(read.logits.data(), DType::f32, {tokens, read.vocabulary})},
      {.name = "tokens", .tensor = Tensor(read.tokens.data(), DType::i32, {tokens})}};
  File file = File::create_new(options.logits);
  checkpoint::write_safetensors(file, tensors);
  std::cout << fmt::format("{}: logits of {} tokens over a vocabulary of {}\n", options.logits, tokens,
                           read.vocabulary);
  return kExitComplete;
}

// Counts, and says once what a reader of the text should know.
class Tally {
 public:
  explicit Tally(int64_t context_length) : context_length_(context_length) {}

  void add(const train::Generation& generation) {
    tokens_ += generation.tokens;
    if (!generation.beyond_context || said_) return;
    said_ = true;
    std::cerr << fmt::format(
        "[note: beyond {} tokens, which the model reads at once, a text goes on from its last {}]\n", context_length_,
        std::max<int64_t>(1, context_length_ / 2));
  }
  void print() const {
    const double seconds = monotonic_seconds() - begin_;
    std::cerr << fmt::format("[{} tokens, {:.1f} tokens/s]\n", tokens_,
                             seconds > 0.0 ? static_cast<double>(tokens_) / seconds : 0.0);
  }

 private:
  int64_t context_length_;
  double begin_ = monotonic_seconds();
  int64_t tokens_ = 0;
  bool said_ = false;
};

// As it is written.
void stream_text(train::TextModel& model, const train::Prompt& prompt, const Options& options, Tally& tally) {
  std::optional<train::Generation> result;
  bool begun = false;
  const auto begin = [&] {
    if (!std::exchange(begun, true)) std::cout << prompt.text;
  };
  train::generate(model, {prompt}, options.generate,
                  {.text =
                       [&](size_t, std::string_view piece) {
                         begin();
                         std::cout << piece << std::flush;
                       },
                   .end = [&](size_t, const train::Generation& generation) { result = generation; }});
  std::cout << std::endl;
  tally.add(*result);
}

struct Written {
  std::string text;
  std::optional<train::Generation> generation;  // once it has ended
};

void print(const train::Prompt& prompt, const Written& written, bool json) {
  if (!json) {
    std::cout << (prompt.number > 0 ? "---\n" : "") << prompt.text << written.text << std::endl;
    return;
  }
  const nlohmann::ordered_json line{{"prompt", prompt.text},
                                    {"text", written.text},
                                    {"prompt_tokens", written.generation->prompt_tokens},
                                    {"tokens", written.generation->tokens},
                                    {"end", name_of(written.generation->end)}};
  std::cout << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
}

// Texts in the order of their prompts, each when it and those before it are complete.
void print_in_order(train::TextModel& model, const std::vector<train::Prompt>& prompts, const Options& options,
                    Tally& tally) {
  std::vector<Written> written(prompts.size());
  size_t printed = 0;
  train::generate(model, prompts, options.generate,
                  {.text = [&](size_t prompt, std::string_view piece) { written[prompt].text += piece; },
                   .end =
                       [&](size_t prompt, const train::Generation& generation) {
                         tally.add(generation);
                         written[prompt].generation = generation;
                         for (; printed < prompts.size() && written[printed].generation; ++printed) {
                           print(prompts[printed], written[printed], options.json);
                           written[printed].text = {};
                         }
                       }});
}

// Every line is a prompt of its own, until the end of the input.
void converse(train::TextModel& model, const Options& options, Tally& tally) {
  const bool terminal = ::isatty(STDIN_FILENO) != 0;
  if (terminal) std::cerr << "each line is a prompt; Ctrl-D ends\n";
  int64_t number = 0;
  while (true) {
    if (terminal) std::cerr << "> ";
    std::string line;
    if (!std::getline(std::cin, line)) break;
    if (line.empty()) continue;
    try {
      stream_text(model, {.text = line, .number = number++}, options, tally);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::user) throw;
      std::cerr << error.what() << '\n';
    }
  }
  if (terminal) std::cerr << '\n';
}

int run_generate(Options options) {
  if (options.greedy) options.generate.temperature = 0.0;
  check(options);
  checkpoint::Loaded checkpoint = train::open_checkpoint(options.checkpoint);
  const config::Run run = train::config_of(checkpoint, options.overrides);
  const std::vector<train::Prompt> prompts = options.interactive ? std::vector<train::Prompt>{} : prompts_of(options);
  const int64_t sequences =
      std::clamp<int64_t>(std::ssize(prompts), 1, std::min(options.batch_size, run.model.encoder_seq_length));
  train::TextModel model(checkpoint, run, sequences);
  if (!options.logits.empty()) return write_logits(model, options);
  Tally tally(model.context_length());
  if (options.interactive) {
    converse(model, options, tally);
  } else if (prompts.size() == 1 && !options.json) {
    stream_text(model, prompts.front(), options, tally);
  } else {
    print_in_order(model, prompts, options, tally);
  }
  tally.print();
  return kExitComplete;
}

void add_choices(CLI::App& verb, Options& options) {
  train::GenerateOptions& generate = options.generate;
  verb.add_option("--max-tokens", generate.max_tokens, "how many tokens at most")
      ->check(at_least(0))
      ->capture_default_str();
  verb.add_option("--temperature", generate.temperature, "below 1: safer; above: wilder; 0: greedy")
      ->check(at_least_real(0))
      ->capture_default_str();
  verb.add_flag("--greedy", options.greedy, "always the likeliest token");
  verb.add_option("--top-k", generate.top_k, "choose among the k likeliest tokens; 0: all")
      ->check(at_least(0))
      ->capture_default_str();
  verb.add_option("--top-p", generate.top_p, "choose among the likeliest tokens that make up this probability")
      ->check(between_real(0, 1))
      ->capture_default_str();
  verb.add_option("--repetition-penalty", generate.repetition_penalty,
                  "above 1: tokens that the text holds are less likely to come again; 1: none")
      ->check(above(0))
      ->capture_default_str();
  verb.add_option("--stop", generate.stops, "end before this text; may be given several times")
      ->allow_extra_args(false);
  verb.add_option("--seed", generate.seed, "the same seed writes the same text")->capture_default_str();
}

}  // namespace

void add_generate(CLI::App& program, Action& run) {
  CLI::App* verb = program.add_subcommand(
      "generate",
      "Write text with a trained model.\n\n"
      "  megalith generate --checkpoint runs/demo --prompt \"In the beginning\"\n"
      "  megalith generate --checkpoint runs/demo/checkpoints --prompt \"And\" --temperature 0.8 --top-k 50 --seed 7\n"
      "  megalith generate --checkpoint runs/demo --prompt \"And\" --greedy --max-tokens 100 --stop .\n"
      "  megalith generate --checkpoint runs/demo --prompts-file prompts.txt --batch-size 16 --json\n"
      "  echo \"And God said\" | megalith generate --checkpoint runs/demo\n"
      "  megalith generate --checkpoint runs/demo --interactive\n"
      "  megalith generate --checkpoint runs/demo --prompt \"And\" --logits logits.safetensors");
  const auto options = std::make_shared<Options>();
  verb->add_option("--checkpoint", options->checkpoint, "a run, its checkpoints directory, or one step in it")
      ->required();
  options->prompt_given =
      verb->add_option("--prompt", options->prompt, "the text to continue; '' writes a document from its start");
  CLI::Option* file = verb->add_option("--prompts-file", options->prompts_file,
                                       "prompts, one a line, or under \"prompt\" or \"text\" in the lines of a .jsonl "
                                       "file; - (and no prompt at all): standard input");
  CLI::Option* interactive =
      verb->add_flag("--interactive", options->interactive, "asks for prompts, one a line, and writes as it goes");
  verb->add_option("--batch-size", options->batch_size, "prompts of a file that are continued together")
      ->check(at_least(1))
      ->capture_default_str();
  CLI::Option* json = verb->add_flag("--json", options->json,
                                     "a JSON object a line: prompt, text, prompt_tokens, tokens, and what ended it");
  CLI::Option* logits =
      verb->add_option("--logits", options->logits,
                       "write no text, but what the model says after each token of the prompt, to this safetensors "
                       "file: tokens (n) and logits (n, vocabulary)");
  options->prompt_given->excludes(file, interactive);
  file->excludes(interactive);
  logits->excludes(json);
  interactive->excludes(json);
  add_choices(*verb, *options);
  verb->add_option("overrides", options->overrides, "key=value, changes to the config the model was trained with");
  verb->callback([options, &run] { run = [options] { return run_generate(*options); }; });
}

}  // namespace megalith::cli
