#include "data/prepare/bench_prepare.h"

#include <time.h>
#include <zstd.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/rng.h"
#include "data/prepare/json/document_fields.h"
#include "data/prepare/prepare.h"

namespace megalith::data {

namespace {
// Words with about the frequencies of English: a few are everywhere, most are rare.
std::string made_up_english(int64_t bytes) {
  constexpr std::array kSyllables = {"the", "of",  "and", "ing", "er", "a",   "to", "in", "re",  "con", "tion", "men",
                                     "al",  "pro", "ver", "is",  "on", "est", "ly", "un", "com", "per", "sta",  "ble"};
  const uint64_t key = named_key(0, "bench_prepare");
  std::string text;
  text.reserve(static_cast<size_t>(bytes) + 64);
  for (uint32_t i = 0; std::ssize(text) < bytes; ++i) {
    const auto random = philox(key, {i, 0, 0, 0});
    // The product of two uniform numbers favours small ones, as Zipf's law does.
    const auto word = static_cast<uint32_t>(uniform_from_bits(random[0]) * uniform_from_bits(random[1]) * 50000.0F);
    for (uint32_t rest = word;; rest /= kSyllables.size()) {
      text += kSyllables[rest % kSyllables.size()];
      if (rest < kSyllables.size()) break;
    }
    text += random[2] % 12 == 0 ? ". " : random[2] % 60 == 1 ? "\n" : " ";
  }
  return text;
}

std::string json_lines_of(const std::string& text, const BenchPrepareOptions& options) {
  std::string lines;
  int64_t at = 0;
  for (int64_t done = 0; done < options.text_bytes; done += options.document_bytes) {
    int64_t end = std::min(at + options.document_bytes, std::ssize(text));
    while (end < std::ssize(text) && (static_cast<unsigned char>(text[static_cast<size_t>(end)]) & 0xC0) == 0x80) ++end;
    const auto document = text.substr(static_cast<size_t>(at), static_cast<size_t>(end - at));
    const nlohmann::json line{{"text", document}, {"meta", {{"redpajama_set_name", "RedPajamaC4"}}}};
    lines += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    at = end == std::ssize(text) ? 0 : end;
  }
  return lines;
}

std::string compressed(const std::string& text, int level) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const size_t size = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), level);
  MEGALITH_CHECK(ZSTD_isError(size) == 0, "zstd: {}", ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

struct RemoveAll {
  std::filesystem::path path;
  ~RemoveAll() {
    std::error_code status;
    std::filesystem::remove_all(path, status);
  }
};

double rate(int64_t bytes, double seconds) {
  return static_cast<double>(bytes) / 1e6 / seconds;
}

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

template <class Use>
double seconds_to_read(const std::filesystem::path& path, Use&& use) {
  const double begin = monotonic_seconds();
  BatchReader reader(path, Cut::lines, {});
  for (bool more = true; more;) {
    const RawBatch batch = reader.next();
    use(batch.text.view());
    more = !batch.last;
  }
  return monotonic_seconds() - begin;
}
}  // namespace

BenchPrepareResult bench_prepare(const Tokenizer& tokenizer, const BenchPrepareOptions& options) {
  const std::filesystem::path folder = options.directory / "megalith-bench-data";
  make_parent_directory(folder / "x");
  const RemoveAll clean{folder};
  const std::string text = options.text.empty() ? made_up_english(int64_t{32} << 20) : read_text(options.text);
  if (text.empty()) user_error("{} has no text to measure with", options.text.string());
  BenchPrepareResult result;
  PrepareOptions prepare_options;
  {
    const std::string file = compressed(json_lines_of(text, options), options.compression_level);
    for (int i = 0; i < options.threads; ++i) {
      prepare_options.inputs.push_back((folder / fmt::format("part{}.jsonl.zst", i)).string());
      replace_file(prepare_options.inputs.back(), file);
    }
    result.compressed_bytes = std::ssize(file) * options.threads;
  }
  const std::string& first = prepare_options.inputs.front();
  const double decompress = seconds_to_read(first, [](std::string_view) {});
  DocumentFields fields({"text"}, {}, BadText::reject);
  int64_t text_bytes = 0;
  const double extract = seconds_to_read(first, [&](std::string_view lines) {
    for (size_t begin = 0; begin < lines.size();) {
      const size_t end = std::min(lines.find('\n', begin), lines.size());
      if (fields.read(lines.substr(begin, end - begin)) == LineVerdict::document) {
        text_bytes += std::ssize(fields.text(0));
      }
      begin = end + 1;
    }
  });
  result.decompress = rate(text_bytes, decompress);
  result.extract = rate(text_bytes, extract);
  prepare_options.output_prefix = folder / "out";
  prepare_options.threads = options.threads;
  prepare_options.encode.append_eod = true;
  const double begin = monotonic_seconds();
  const double processor_begin = processor_seconds();
  const PrepareSummary summary = prepare(tokenizer, prepare_options);
  const double seconds = monotonic_seconds() - begin;
  const double processor = processor_seconds() - processor_begin;
  result.text_bytes = summary.keys[0].counts.text_bytes;
  result.tokens = summary.keys[0].counts.tokens;
  result.prepare = rate(result.text_bytes, seconds) / options.threads;
  result.prepare_cpu = rate(result.text_bytes, processor);
  return result;
}

}  // namespace megalith::data
