#include "data/tokenizer/tokenizer_files.h"

#include "core/error.h"
#include "core/file.h"
#include "core/hash/digest.h"

namespace megalith::data::files {

std::string read(const std::filesystem::path& path) {
  if (std::error_code ignored; !std::filesystem::exists(path, ignored)) {
    user_error("the tokenizer file {} does not exist: give its path as seen from {}", path.string(),
               std::filesystem::current_path().string());
  }
  const File file = File::open_for_reading(path);
  const int64_t size = file.size();
  if (size > kLargestFile) data_error("{}: {} bytes are too many for a tokenizer", path.string(), size);
  std::string content(static_cast<size_t>(size), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(content)));
  return content;
}

std::string digest_of(const std::vector<std::string_view>& contents) {
  std::string digests;
  for (const std::string_view content : contents) digests += megalith::digest_of(content);
  return contents.size() == 1 ? digests : megalith::digest_of(digests);
}

void place_token(std::vector<std::string>& tokens, int64_t id, std::string token, size_t entries,
                 const std::string& source) {
  // Real vocabularies have few holes; an id far beyond the number of tokens would only eat memory.
  const auto limit = static_cast<int64_t>(2 * entries + (1 << 16));
  if (id < 0 || id >= limit) data_error("{}: id {} is out of range for {} tokens", source, id, entries);
  if (token.empty()) data_error("{}: id {} is an empty token", source, id);
  if (token.size() > kLongestToken) {
    data_error("{}: id {} is a token of {} bytes; at most {} are supported", source, id, token.size(), kLongestToken);
  }
  const auto at = static_cast<size_t>(id);
  if (at >= tokens.size()) tokens.resize(at + 1);
  if (!tokens[at].empty()) data_error("{}: id {} is used twice", source, id);
  tokens[at] = std::move(token);
}

}  // namespace megalith::data::files
