#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <ctime>
#include <iostream>
#include <iterator>
#include <memory>
#include <span>

#include "cli/accepts.h"
#include "cli/data/data_options.h"
#include "cli/data/data_verbs.h"
#include "core/error.h"
#include "core/file.h"
#include "data/files/mapped_file.h"
#include "data/tokenizer/tokenizer.h"

namespace megalith::cli {

namespace {

struct Options {
  config::Tokenizer tokenizer;
  std::string text;
  std::string input;
  std::string lengths;
  std::string output;
  std::string specials = "plain";
  int repeat = 1;
};

std::string standard_input() {
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

data::SpecialText special_text(const std::string& name) {
  if (name == "plain") return data::SpecialText::plain;
  if (name == "encode") return data::SpecialText::encode;
  return data::SpecialText::reject;
}

void write_ids(const std::string& path, std::span<const int32_t> ids) {
  replace_file(path, {reinterpret_cast<const char*>(ids.data()), ids.size_bytes()});
}

template <class Number>
std::vector<Number> parse_numbers(const std::string& text) {
  std::vector<Number> numbers;
  const auto separates = [](char c) { return c == ' ' || c == ',' || c == '\n' || c == '\t' || c == '\r'; };
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    while (at < end && separates(*at)) ++at;
    if (at == end) return numbers;
    const auto [next, status] = std::from_chars(at, end, numbers.emplace_back());
    if (status != std::errc() || (next < end && !separates(*next))) {
      user_error("\"{}\" is not a list of numbers",
                 std::string_view(at, std::min<size_t>(20, static_cast<size_t>(end - at))));
    }
    at = next;
  }
}

// The texts of a file that holds several, one after the other; a second file has their lengths in bytes.
std::vector<std::string_view> cut(std::string_view text, const std::string& lengths) {
  if (lengths.empty()) return {text};
  std::vector<std::string_view> texts;
  for (const int64_t length : parse_numbers<int64_t>(read_text(lengths))) {
    if (length < 0 || length > std::ssize(text)) user_error("{}: the lengths exceed the input", lengths);
    texts.push_back(text.substr(0, static_cast<size_t>(length)));
    text.remove_prefix(static_cast<size_t>(length));
  }
  if (!text.empty()) user_error("{}: the lengths leave {} bytes of the input", lengths, text.size());
  return texts;
}

int run_encode(const Options& options) {
  const data::SpecialText policy = special_text(options.specials);
  const auto tokenizer = data::make_tokenizer(options.tokenizer);
  const data::MappedFile mapped = options.input.empty() ? data::MappedFile() : data::MappedFile(options.input);
  const std::string typed = !options.input.empty() ? "" : options.text.empty() ? standard_input() : options.text;
  const auto bytes = mapped.bytes();
  const std::string_view text =
      options.input.empty() ? typed : std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::vector<std::string_view> texts = cut(text, options.lengths);
  std::vector<int32_t> ids;
  for (int i = 0; i < options.repeat; ++i) {
    ids.clear();
    const std::clock_t begin = std::clock();
    int64_t specials = 0;
    for (const std::string_view one : texts) specials += tokenizer->encode_with_specials(one, ids, policy);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;  // of the core: one thread
    if (!options.output.empty()) {
      std::cerr << fmt::format("{} bytes, {} tokens, {} special strings, {:.1f} MB/s per core\n", text.size(),
                               ids.size(), specials, static_cast<double>(text.size()) / 1e6 / std::max(seconds, 1e-6));
    }
  }
  if (options.output.empty()) {
    std::cout << fmt::format("{}\n", fmt::join(ids, " "));
  } else {
    write_ids(options.output, ids);
  }
  return kExitComplete;
}

int run_decode(const Options& options) {
  const auto tokenizer = data::make_tokenizer(options.tokenizer);
  std::cout << tokenizer->decode(parse_numbers<int32_t>(options.text.empty() ? standard_input() : options.text));
  return kExitComplete;
}

}  // namespace

void add_data_encode(CLI::App& data, Action& run) {
  CLI::App* encode = data.add_subcommand(
      "encode",
      "The ids of a text: of the argument, of --input, or of standard input.\n\n"
      "  megalith data encode --tokenizer-type GPT2BPETokenizer --vocab-file vocab.json --merge-file merges.txt "
      "'Hello'\n"
      "  megalith data encode --tokenizer-type TikTokenizer --tokenizer-model cl100k_base.tiktoken \\\n"
      "    --tiktoken-pattern cl100k --input book.txt --output book.ids");
  const auto options = std::make_shared<Options>();
  add_tokenizer_options(*encode, options->tokenizer);
  encode->add_option("text", options->text, "the text");
  encode->add_option("--input", options->input, "a file that is one text");
  encode->add_option("--lengths", options->lengths, "a file with the lengths in bytes of the texts that --input is");
  encode->add_option("--output", options->output, "write the ids here, as int32, and print how fast that went");
  encode
      ->add_option("--special-in-text", options->specials,
                   "<|endoftext|> in a text: plain characters, encode as the token, or reject the text")
      ->check(one_of({"plain", "encode", "reject"}))
      ->capture_default_str();
  encode->add_option("--repeat", options->repeat, "encode so many times, to measure")
      ->check(at_least(1))
      ->capture_default_str();
  encode->callback([encode, options, &run] {
    settle_tokenizer(*encode, options->tokenizer);
    run = [options] { return run_encode(*options); };
  });
}

void add_data_decode(CLI::App& data, Action& run) {
  CLI::App* decode = data.add_subcommand("decode",
                                         "The text of ids, given as the argument or on standard input.\n\n"
                                         "  megalith data decode --tokenizer-type GPT2BPETokenizer --vocab-file "
                                         "vocab.json --merge-file merges.txt '15496 995'");
  const auto options = std::make_shared<Options>();
  add_tokenizer_options(*decode, options->tokenizer);
  decode->add_option("ids", options->text, "numbers with spaces or commas between");
  decode->callback([decode, options, &run] {
    settle_tokenizer(*decode, options->tokenizer);
    run = [options] { return run_decode(*options); };
  });
}

}  // namespace megalith::cli
