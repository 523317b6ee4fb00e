#include "data/files/indexed_dataset.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "core/error.h"
#include "data/near_names.h"

namespace megalith::data {

static_assert(std::endian::native == std::endian::little, "the files are little-endian and read as they are");

namespace {
constexpr std::string_view kMagic{"MMIDIDX\0\0", 9};
constexpr std::string_view kOldMagic{"TNTIDX", 6};
constexpr int64_t kFairseqHeader = 26;
constexpr int64_t kHeader = 34;
constexpr int64_t kMostTokens = int64_t{1} << 58;  // keeps every byte count below 2^63

template <class T>
T load(std::span<const std::byte> bytes, int64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

bool begins_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

// Returns the position of the first value that an int32 cannot hold, or -1.
template <class T>
int64_t widen(const std::byte* raw, std::span<int32_t> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, raw + i * sizeof(T), sizeof(T));
    if (!std::in_range<int32_t>(value)) return static_cast<int64_t>(i);
    out[i] = static_cast<int32_t>(value);
  }
  return -1;
}

int64_t widen(TokenType type, const std::byte* raw, std::span<int32_t> out) {
  switch (type) {
    case TokenType::uint8:
      return widen<uint8_t>(raw, out);
    case TokenType::int8:
      return widen<int8_t>(raw, out);
    case TokenType::int16:
      return widen<int16_t>(raw, out);
    case TokenType::int32:
      return widen<int32_t>(raw, out);
    case TokenType::int64:
      return widen<int64_t>(raw, out);
    case TokenType::uint16:
      return widen<uint16_t>(raw, out);
    case TokenType::uint32:
      return widen<uint32_t>(raw, out);
    case TokenType::uint64:
      return widen<uint64_t>(raw, out);
  }
  return -1;
}

// The prefixes of the datasets that lie in the directory of a prefix.
std::vector<std::string> prefixes_beside(const std::filesystem::path& prefix) {
  const std::filesystem::path directory = prefix.has_parent_path() ? prefix.parent_path() : std::filesystem::path(".");
  std::set<std::string> names;
  std::error_code status;
  for (std::filesystem::directory_iterator entry(directory, status), end; !status && entry != end;
       entry.increment(status)) {
    if (entry->path().extension() == ".idx") names.insert(entry->path().stem().string());
  }
  return {names.begin(), names.end()};
}

// A prefix whose two files exist, or a user error that says what is missing and what may have been meant.
std::string existing_prefix(const std::string& prefix) {
  std::error_code status;
  const bool index_exists = std::filesystem::exists(prefix + ".idx", status);
  const bool tokens_exist = std::filesystem::exists(prefix + ".bin", status);
  if (index_exists && tokens_exist) return prefix;

  std::string hint;
  const std::filesystem::path path(prefix);
  if (path.extension() == ".bin" || path.extension() == ".idx") {
    hint = fmt::format("; a data prefix is written without {}", path.extension().string());
  } else if (const auto near = near_names(path.filename().string(), prefixes_beside(path)); !near.empty()) {
    hint = "; in the same directory:";
    for (const std::string& name : near) hint += " " + name;
  }
  const char* missing = index_exists ? ".bin is missing" : tokens_exist ? ".idx is missing" : "neither exists";
  user_error("dataset {0} not found: it is made of {0}.idx and {0}.bin, and {1}{2}", prefix, missing, hint);
}
}  // namespace

IndexedDataset::IndexedDataset(const std::string& prefix, IndexedDatasetOptions options)
    : IndexedDataset(existing_prefix(prefix) + ".idx", prefix + ".bin", options) {
  name_ = prefix;
}

IndexedDataset::IndexedDataset(const std::filesystem::path& index_path, const std::filesystem::path& token_path,
                               IndexedDatasetOptions options)
    : name_(token_path.string()),
      index_path_(index_path),
      index_(index_path),
      token_file_(File::open_for_reading(token_path)),
      map_tokens_(options.map_tokens) {
  parse_header();
  if (options.known_tokens) {
    tokens_ = *options.known_tokens;
  } else {
    count_tokens();
  }
  choose_token_type(token_file_.size());
  if (!options.known_tokens) {
    check_pointers();
    check_documents();
  }
  if (map_tokens_) mapped_tokens_ = MappedFile(token_path);
}

void IndexedDataset::parse_header() {
  const auto bytes = index_.bytes();
  const std::string file = index_path_.string();
  if (begins_with(bytes, kOldMagic)) {
    data_error(
        "{} is a TNTIDX index (fairseq's and Megatron's old lazy or cached format), which is not supported: "
        "tokenize the text again",
        file);
  }
  if (!begins_with(bytes, kMagic)) data_error("{} is not a Megatron index: it does not begin with MMIDIDX", file);
  if (std::ssize(bytes) < kFairseqHeader) {
    data_error("{} is truncated: a header takes {} bytes, the file has {}", file, kFairseqHeader, bytes.size());
  }
  if (const auto version = load<uint64_t>(bytes, 9); version != 1) {
    data_error("{} has version {}; only version 1 is known", file, version);
  }
  code_ = load<uint8_t>(bytes, 17);
  parse_counts();
}

void IndexedDataset::parse_counts() {
  const auto bytes = index_.bytes();
  const auto size = std::ssize(bytes);
  const std::string file = index_path_.string();
  const auto sequences = load<uint64_t>(bytes, 18);
  // Counts are compared by division, so that a hostile one cannot overflow.
  if (sequences > static_cast<uint64_t>((size - kFairseqHeader) / 12)) {
    data_error("{} is truncated or damaged: its header counts {} sequences, more than its {} bytes can hold", file,
               sequences, size);
  }
  sequences_ = static_cast<int64_t>(sequences);
  if (size == kFairseqHeader + 12 * sequences_) {
    lengths_at_ = kFairseqHeader;
    return;
  }
  const int64_t left = size - kHeader - 12 * sequences_;
  const uint64_t entries = left < 0 ? 0 : load<uint64_t>(bytes, 26);
  if (left < 0 || entries > static_cast<uint64_t>(left / 8)) {
    data_error(
        "{} is truncated or damaged: its header counts {} sequences and {} documents, more than its {} bytes hold",
        file, sequences, entries, size);
  }
  const int64_t wanted = kHeader + 12 * sequences_ + 8 * static_cast<int64_t>(entries);
  if (sequences_ > 0 && size == wanted + sequences_) {
    data_error("{} is the index of a multimodal dataset (it ends in a mode per sequence), which is not supported",
               file);
  }
  if (size != wanted) data_error("{} is damaged: its header asks for {} bytes, the file has {}", file, wanted, size);
  if (entries == 0) data_error("{} is damaged: its document array is empty", file);
  document_entries_ = static_cast<int64_t>(entries);
  lengths_at_ = kHeader;
}

void IndexedDataset::count_tokens() {
  for (int64_t i = 0; i < sequences_; ++i) {
    const int32_t tokens = length(i);
    if (tokens < 0) data_error("{} is damaged: sequence {} has length {}", index_path_.string(), i, tokens);
    tokens_ += tokens;
    if (tokens_ > kMostTokens)
      data_error("{} is damaged: it counts more tokens than a file can hold", index_path_.string());
  }
}

// The same code means different types to Megatron and to DeepSpeed; bytes per token decide, or the file is refused.
void IndexedDataset::choose_token_type(int64_t token_bytes) {
  const std::string file = index_path_.string();
  switch (code_) {
    case 1:
      type_ = TokenType::uint8;
      break;
    case 2:
      type_ = TokenType::int8;
      break;
    case 3:
      type_ = TokenType::int16;
      break;
    case 4:
      type_ = TokenType::int32;
      break;
    case 5:
      type_ = TokenType::int64;
      break;
    case 6:
      if (tokens_ == 0 || token_bytes != tokens_ * size_of(TokenType::uint16)) {
        data_error(
            "{} has dtype code 6: float64 to Megatron, uint16 to DeepSpeed. {} has {} bytes for {} tokens, which is "
            "not "
            "uint16, and floats are not tokens",
            file, token_file_.path().string(), token_bytes, tokens_);
      }
      type_ = TokenType::uint16;
      break;
    case 7:
      data_error(
          "{} has dtype code 7: float32 to Megatron, uint32 to DeepSpeed. Both take 4 bytes, so they cannot be told "
          "apart, "
          "and floats are not tokens: tokenize the text again",
          file);
    case 8:
      type_ =
          tokens_ > 0 && token_bytes == tokens_ * size_of(TokenType::uint64) ? TokenType::uint64 : TokenType::uint16;
      break;
    default:
      data_error("{} has the unknown dtype code {}", file, code_);
  }
  const int64_t wanted = tokens_ * size_of(type_);
  if (token_bytes != wanted) {
    data_error("{} is {}: {} tokens of {} take {} bytes, the file has {}", token_file_.path().string(),
               token_bytes < wanted ? "truncated" : "longer than its index says", tokens_, name_of(type_), wanted,
               token_bytes);
  }
}

void IndexedDataset::check_pointers() const {
  int64_t expected = 0;
  for (int64_t i = 0; i < sequences_; ++i) {
    if (pointer(i) != expected) {
      data_error("{} is damaged: sequence {} begins at byte {} by its pointer and at byte {} by the lengths before it",
                 index_path_.string(), i, pointer(i), expected);
    }
    expected += length(i) * size_of(type_);
  }
}

void IndexedDataset::check_documents() const {
  if (document_entries_ == 0) return;
  const std::string file = index_path_.string();
  if (document_begin(0) != 0) data_error("{} is damaged: its first document begins at {}", file, document_begin(0));
  for (int64_t i = 1; i < document_entries_; ++i) {
    if (document_begin(i) < document_begin(i - 1)) {
      data_error("{} is damaged: document {} begins at sequence {}, before the one in front of it", file, i,
                 document_begin(i));
    }
  }
  if (const int64_t last = document_begin(document_entries_ - 1); last != sequences_) {
    data_error("{} is damaged: its document array ends at sequence {} of {}", file, last, sequences_);
  }
}

IndexKey IndexedDataset::content_hash() const {
  return hash128(index_.bytes().first(static_cast<size_t>(lengths_at_ + 4 * sequences_)));
}

int32_t IndexedDataset::length(int64_t sequence) const {
  return load<int32_t>(index_.bytes(), lengths_at_ + 4 * sequence);
}

int64_t IndexedDataset::pointer(int64_t sequence) const {
  return load<int64_t>(index_.bytes(), lengths_at_ + 4 * sequences_ + 8 * sequence);
}

int64_t IndexedDataset::document_begin(int64_t document) const {
  if (document_entries_ == 0) return document;
  return load<int64_t>(index_.bytes(), lengths_at_ + 12 * sequences_ + 8 * document);
}

void IndexedDataset::read(int64_t sequence, int64_t offset, std::span<int32_t> out) const {
  MEGALITH_CHECK(sequence >= 0 && sequence < sequences_, "sequence {} of {} in {}", sequence, sequences_, name_);
  MEGALITH_CHECK(offset >= 0 && offset + std::ssize(out) <= length(sequence),
                 "tokens {} to {} of {} in sequence {} of {}", offset, offset + std::ssize(out), length(sequence),
                 sequence, name_);
  std::array<std::byte, 32768> buffer;
  const int64_t item = size_of(type_);
  const int64_t block = std::ssize(buffer) / item;
  for (int64_t done = 0; done < std::ssize(out); done += block) {
    const int64_t count = std::min(block, std::ssize(out) - done);
    const int64_t at = pointer(sequence) + (offset + done) * item;
    const std::byte* raw = buffer.data();
    if (map_tokens_) {
      raw = mapped_tokens_.bytes().data() + at;
    } else {
      token_file_.read_at(at, std::span(buffer).first(static_cast<size_t>(count * item)));
    }
    const int64_t bad = widen(type_, raw, out.subspan(static_cast<size_t>(done), static_cast<size_t>(count)));
    if (bad >= 0) {
      data_error("{}: sequence {}, position {} holds a token id that is no 32-bit number", name_, sequence,
                 offset + done + bad);
    }
  }
}

}  // namespace megalith::data
