#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "core/error.h"
#include "data/tokenizer/tokenizer_files.h"

namespace megalith::data {

namespace {
int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  size_t digits = text.size();
  while (digits > text.size() - 2 && text[digits - 1] == '=') --digits;
  std::string bytes;
  uint32_t bits = 0;
  for (size_t i = 0; i < digits; ++i) {
    const int value = base64_value(text[i]);
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (i % 4 != 0) bytes.push_back(static_cast<char>(bits >> (6 - 2 * (i % 4)) & 0xFF));
  }
  // What the padding cuts off must be zero.
  if (digits % 4 != 0 && (bits & ((1u << (digits % 4 == 2 ? 4 : 2)) - 1)) != 0) return std::nullopt;
  return bytes;
}

void read_ranks(std::string_view content, TokenizerFiles& files) {
  const auto lines = static_cast<size_t>(std::count(content.begin(), content.end(), '\n')) + 1;
  for (int64_t number = 1; !content.empty(); ++number) {
    const size_t end = content.find('\n');
    std::string_view line = content.substr(0, end);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::string place = fmt::format("{}: line {}", files.source, number);
    const size_t space = line.find(' ');
    const auto token = space == std::string_view::npos ? std::nullopt : decode_base64(line.substr(0, space));
    int64_t rank = -1;
    const char* const digits = space == std::string_view::npos ? line.data() : line.data() + space + 1;
    const auto parsed = std::from_chars(digits, line.data() + line.size(), rank);
    if (!token || parsed.ec != std::errc() || parsed.ptr != line.data() + line.size()) {
      data_error("{} is not \"base64 rank\"", place);
    }
    files::place_token(files.vocabulary.tokens, rank, *token, lines, place);
  }
}

// Special tokens stand behind the ranks: at a distance from the first free id.
struct Special {
  std::string_view text;
  int32_t distance;
};
struct Pattern {
  std::string_view name;
  Grammar grammar;
  std::string_view eod;
  std::vector<Special> specials;
};

std::vector<Special> llama3_specials(std::vector<std::string>& reserved) {
  // 256 in all; those without a meaning of their own are numbered, as Meta's code numbers them.
  std::vector<Special> specials = {{"<|begin_of_text|>", 0}, {"<|end_of_text|>", 1}, {"<|start_header_id|>", 6},
                                   {"<|end_header_id|>", 7}, {"<|eom_id|>", 8},      {"<|eot_id|>", 9},
                                   {"<|python_tag|>", 10}};
  reserved = {"<|reserved_special_token_0|>", "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>",
              "<|reserved_special_token_2|>"};
  for (int i = 3; i < 248; ++i) reserved.push_back(fmt::format("<|reserved_special_token_{}|>", i));
  for (int i = 0; i < static_cast<int>(reserved.size()); ++i) {
    specials.push_back({reserved[static_cast<size_t>(i)], i < 4 ? 2 + i : 7 + i});
  }
  return specials;
}
}  // namespace

TokenizerFiles read_tiktoken(const std::filesystem::path& path, const std::string& pattern_name) {
  std::vector<std::string> reserved;
  const std::array patterns = {
      Pattern{"r50k", Grammar::gpt2, "<|endoftext|>", {{"<|endoftext|>", 0}}},
      Pattern{"cl100k",
              Grammar::cl100k,
              "<|endoftext|>",
              {{"<|endoftext|>", 1},
               {"<|fim_prefix|>", 2},
               {"<|fim_middle|>", 3},
               {"<|fim_suffix|>", 4},
               {"<|endofprompt|>", 20}}},
      Pattern{"o200k", Grammar::o200k, "<|endoftext|>", {{"<|endoftext|>", 1}, {"<|endofprompt|>", 20}}},
      Pattern{"llama3", Grammar::llama3, "<|end_of_text|>", llama3_specials(reserved)},
  };
  const auto pattern =
      std::find_if(patterns.begin(), patterns.end(), [&](const Pattern& p) { return p.name == pattern_name; });
  if (pattern == patterns.end()) {
    user_error(
        "{}: a tiktoken file does not say how text is cut: give model.tokenizer.tiktoken_pattern (--tiktoken-pattern) "
        "as r50k, cl100k, o200k or llama3{}",
        path.string(), pattern_name.empty() ? "" : ", not " + pattern_name);
  }
  const std::string content = files::read(path);
  TokenizerFiles files;
  files.name = "TikTokenizer";
  files.source = path.string();
  files.digest = files::digest_of({content});
  files.grammar = pattern->grammar;
  files.vocabulary.reference = BpeReference::tiktoken;
  read_ranks(content, files);

  const std::vector<std::string>& tokens = files.vocabulary.tokens;
  auto first_free = static_cast<int32_t>(tokens.size());
  // p50k goes on behind the id that r50k gave to <|endoftext|>.
  constexpr int32_t kR50kEod = 50256;
  const bool hole = first_free > kR50kEod && tokens[kR50kEod].empty();
  if (pattern->grammar == Grammar::gpt2 && hole) first_free = kR50kEod;
  for (const Special& special : pattern->specials) {
    files.specials.emplace_back(special.text, first_free + special.distance);
    files.vocab_size = std::max<int64_t>({files.vocab_size, std::ssize(tokens), first_free + special.distance + 1});
    if (special.text == pattern->eod) files.eod = first_free + special.distance;
    if (special.text == "<|begin_of_text|>") files.bos = first_free + special.distance;
  }
  return files;
}

}  // namespace megalith::data
