#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/tokenizer/bpe/merge_list.h"
#include "data/tokenizer/byte_alphabet.h"
#include "data/tokenizer/tokenizer_files.h"

namespace megalith::data {

namespace {
constexpr std::string_view kEod = "<|endoftext|>";

void read_vocab(const std::string& content, const std::string& source, TokenizerFiles& files) {
  const nlohmann::json vocab = nlohmann::json::parse(content, nullptr, false);
  if (!vocab.is_object()) data_error("{}: not a JSON object of tokens and ids", source);
  for (const auto& [token, id] : vocab.items()) {
    if (!id.is_number_integer()) data_error("{}: the id of \"{}\" is not an integer", source, token);
    const auto number = id.get<int64_t>();
    if (token == kEod) {
      files.eod = number >= 0 && number <= static_cast<int64_t>(vocab.size()) ? static_cast<int32_t>(number) : -1;
      if (files.eod < 0) data_error("{}: id {} of {} is out of range", source, number, kEod);
      files.specials.emplace_back(token, files.eod);
      continue;
    }
    auto bytes = from_byte_alphabet(token);
    if (!bytes) data_error("{}: \"{}\" is not written in GPT-2's byte alphabet", source, token);
    files::place_token(files.vocabulary.tokens, number, std::move(*bytes), vocab.size(), source);
  }
  if (files.eod < 0) data_error("{}: no {}", source, kEod);
  const std::vector<std::string>& tokens = files.vocabulary.tokens;
  if (static_cast<size_t>(files.eod) < tokens.size() && !tokens[static_cast<size_t>(files.eod)].empty()) {
    data_error("{}: id {} is used twice", source, files.eod);
  }
  files.vocab_size = std::max<int64_t>(std::ssize(tokens), files.eod + 1);
  if (files.vocab_size != static_cast<int64_t>(vocab.size())) {
    data_error("{}: {} tokens but ids up to {}", source, vocab.size(), files.vocab_size - 1);
  }
}

void read_merges(std::string_view content, const std::string& source, TokenizerFiles& files) {
  MergeList merges(files.vocabulary.tokens, source);
  for (int64_t line_number = 1; !content.empty(); ++line_number) {
    const size_t end = content.find('\n');
    std::string_view line = content.substr(0, end);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (line_number == 1 && line.starts_with("#version"))) continue;
    merges.add(line, fmt::format("line {}", line_number));
  }
  files.vocabulary.merges = merges.take();
}
}  // namespace

TokenizerFiles read_gpt2(const std::filesystem::path& vocab, const std::filesystem::path& merges) {
  const std::string vocab_content = files::read(vocab), merges_content = files::read(merges);
  TokenizerFiles files;
  files.name = "GPT2BPETokenizer";
  files.source = vocab.string() + " and " + merges.string();
  files.digest = files::digest_of({vocab_content, merges_content});
  read_vocab(vocab_content, vocab.string(), files);
  read_merges(merges_content, merges.string(), files);
  return files;
}

}  // namespace megalith::data
