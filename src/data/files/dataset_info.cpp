#include "data/files/dataset_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "data/prepare/read/bad_lines.h"
#include "data/tokenizer/data_tokenizer.h"

namespace megalith::data {

namespace {
constexpr int64_t kBar = 40;

// Escapes what would leave the line or the terminal in disorder; UTF-8 stays as it is.
std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\t') {
      line += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  return line;
}

// Cuts before the character that would pass `width` bytes.
std::string_view cut(std::string_view text, size_t width) {
  if (text.size() <= width) return text;
  while (width > 0 && (static_cast<unsigned char>(text[width]) & 0xc0) == 0x80) --width;
  return text.substr(0, width);
}
}  // namespace

LengthHistogram histogram_of(const IndexedDataset& dataset) {
  LengthHistogram histogram;
  if (dataset.sequences() == 0) return histogram;
  histogram.shortest = dataset.length(0);
  for (int64_t i = 0; i < dataset.sequences(); ++i) {
    const int64_t length = dataset.length(i);
    ++histogram.counts[static_cast<size_t>(std::bit_width(static_cast<uint64_t>(length)))];
    histogram.shortest = std::min(histogram.shortest, length);
    histogram.longest = std::max(histogram.longest, length);
  }
  return histogram;
}

std::string draw(const LengthHistogram& histogram) {
  std::string text = "tokens per sequence\n";
  const int64_t most = *std::max_element(histogram.counts.begin(), histogram.counts.end());
  const auto first = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(histogram.shortest)));
  const auto last = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(histogram.longest)));
  for (size_t i = first; i <= last && most > 0; ++i) {
    const int64_t low = i == 0 ? 0 : int64_t{1} << (i - 1);
    const int64_t high = i == 0 ? 0 : (int64_t{1} << i) - 1;
    const std::string range = low == high ? fmt::format("{}", low) : fmt::format("{}-{}", low, high);
    // Rounded up: what is there is seen.
    const int64_t bar = (histogram.counts[i] * kBar + most - 1) / most;
    text += fmt::format("  {:>21} {:>12} {}\n", range, histogram.counts[i], std::string(static_cast<size_t>(bar), '#'));
  }
  return text;
}

std::string describe_counts(const IndexedDataset& dataset) {
  const auto bytes = [](const std::filesystem::path& path) {
    return static_cast<double>(std::filesystem::file_size(path)) / 1e6;
  };
  const auto sequences = static_cast<double>(std::max<int64_t>(dataset.sequences(), 1));
  return fmt::format(
      "{}\n  documents    {}\n  sequences    {}\n  tokens       {} ({:.1f} per sequence)\n  dtype        {}\n"
      "  .bin         {:.1f} MB\n  .idx         {:.1f} MB\n",
      dataset.name(), dataset.documents(), dataset.sequences(), dataset.tokens(),
      static_cast<double>(dataset.tokens()) / sequences, name_of(dataset.token_type()), bytes(dataset.token_path()),
      bytes(dataset.index_path()));
}

std::string describe_origin(const std::string& prefix) {
  const std::optional<RecordedTokenizer> tokenizer = tokenizer_of_data(prefix);
  if (size_if_there(prefix + ".json") < 0) return "no sidecar .json: tokenizer and sources are not known\n";
  const auto json = nlohmann::json::parse(read_text(prefix + ".json"));
  std::string text;
  if (tokenizer) {
    text += fmt::format("tokenizer: {}, {} ids, {}\n", describe(*tokenizer), tokenizer->vocab_size,
                        tokenizer->eod < 0 ? "documents do not end with a token of their own"
                                           : fmt::format("documents end with {}", tokenizer->eod));
  }
  const char* const list = json.contains("merged") ? "merged" : "inputs";
  if (const auto inputs = json.find(list); inputs != json.end() && inputs->is_array() && !inputs->empty()) {
    int64_t bytes = 0;
    for (const auto& file : *inputs) bytes += file.value("bytes", int64_t{0});
    text += fmt::format("made from {} file{} of {:.1f} MB, the first is {}\n", inputs->size(),
                        inputs->size() == 1 ? "" : "s", static_cast<double>(bytes) / 1e6,
                        inputs->front().value("path", "?"));
  }
  if (const int64_t filtered = json.value("filtered", int64_t{0}); filtered > 0) {
    text += fmt::format("filtered out: {} documents\n", filtered);
  }
  if (json.contains("skipped")) {
    const BadLines skipped = BadLines::from_json(json.at("skipped"));
    for (int i = 0; i < kBadLineKinds; ++i) {
      const auto kind = static_cast<BadLine>(i);
      if (skipped.count(kind) > 0) text += fmt::format("skipped: {} ({})\n", skipped.count(kind), name_of(kind));
    }
  }
  return text;
}

std::string show_samples(const IndexedDataset& dataset, const Tokenizer* tokenizer, int64_t count, int64_t width) {
  std::string text;
  count = std::min(count, dataset.sequences());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t sequence = i * dataset.sequences() / count;
    // No token stands for less than a byte.
    std::vector<int32_t> ids(static_cast<size_t>(std::min<int64_t>(dataset.length(sequence), width)));
    dataset.read(sequence, 0, ids);
    text += fmt::format("sequence {} ({} tokens):", sequence, dataset.length(sequence));
    if (tokenizer) {
      const std::string decoded = tokenizer->decode(ids);
      text += fmt::format(" {}", on_one_line(cut(decoded, static_cast<size_t>(width))));
    } else {
      ids.resize(std::min<size_t>(ids.size(), 16));
      for (const int32_t id : ids) text += fmt::format(" {}", id);
    }
    text += "\n";
  }
  return text;
}

}  // namespace megalith::data
