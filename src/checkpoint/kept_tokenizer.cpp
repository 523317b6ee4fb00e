#include "checkpoint/kept_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "checkpoint/file_names.h"
#include "core/error.h"
#include "core/file.h"
#include "core/hash/digest.h"

namespace megalith::checkpoint {

namespace fs = std::filesystem;

namespace {

fs::path directory_in(const fs::path& checkpoints) {
  return checkpoints / "tokenizer";
}

// Each file under a name of its own, whatever it was called.
struct KeptFile {
  std::string config::Tokenizer::*field;
  fs::path kept;
};

std::vector<KeptFile> files_of(const config::Tokenizer& tokenizer, const fs::path& checkpoints) {
  const fs::path directory = directory_in(checkpoints);
  const fs::path model = "model" + fs::path(tokenizer.model).extension().string();
  std::vector<KeptFile> files{{&config::Tokenizer::vocab_file, directory / "vocab.json"},
                              {&config::Tokenizer::merge_file, directory / "merges.txt"},
                              {&config::Tokenizer::model, directory / model}};
  std::erase_if(files, [&](const KeptFile& file) { return (tokenizer.*file.field).empty(); });
  return files;
}

// "merges.txt=<digest> vocab.json=<digest>".
std::map<std::string, std::string> parse_digests(const std::string& text) {
  std::map<std::string, std::string> digests;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.rfind('=');
    if (equals != std::string::npos) digests[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return digests;
}

void check_digest(const fs::path& file, const std::string& digest) {
  if (const std::string found = digest_of(read_text(file)); found != digest) {
    data_error("{} is not the file that the model learned from: its digest is {}, not {}; put that file back",
               file.string(), found, digest);
  }
}

bool holds_steps(const fs::path& checkpoints) {
  std::error_code ignored;
  const fs::directory_iterator entries(checkpoints, ignored);
  return std::any_of(begin(entries), end(entries),
                     [](const auto& entry) { return parse_step_name(entry.path().filename().string()).has_value(); });
}

}  // namespace

std::vector<std::string> keep_tokenizer(const config::Tokenizer& tokenizer, const fs::path& checkpoints,
                                        const std::string& digests) {
  const std::map<std::string, std::string> known = parse_digests(digests);
  std::vector<std::string> notes;
  const bool stays = holds_steps(checkpoints);
  for (const auto& [field, kept] : files_of(tokenizer, checkpoints)) {
    const fs::path file = tokenizer.*field;
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) continue;  // a model may learn from tokens alone
    try {
      const std::string content = read_text(file);
      if (fs::exists(kept) && read_text(kept) == content) continue;
      if (fs::exists(kept) && stays) {
        notes.push_back(
            fmt::format("{} is not the file that this run began with, which is {}", file.string(), kept.string()));
        continue;
      }
      const auto began_with = known.find(kept.filename().string());
      if (began_with != known.end() && began_with->second != digest_of(content)) {
        notes.push_back(fmt::format("{} is not the file that this run began with, which is no longer in {}",
                                    file.string(), kept.parent_path().string()));
        continue;
      }
      make_directory(kept.parent_path());
      replace_file(kept, content);
    } catch (const std::exception& error) {
      notes.push_back(fmt::format("the tokenizer cannot be kept with the checkpoints: {}", error.what()));
    }
  }
  return notes;
}

std::string kept_digests(const config::Tokenizer& tokenizer, const fs::path& checkpoints) {
  std::string text;
  for (const auto& [field, kept] : files_of(tokenizer, checkpoints)) {
    if (fs::exists(kept))
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", kept.filename().string(), digest_of(read_text(kept)));
  }
  return text;
}

void check_kept_tokenizer(const fs::path& checkpoints, const std::string& digests) {
  const fs::path directory = directory_in(checkpoints);
  if (!is_plain_directory(directory)) return;
  for (const auto& [name, digest] : parse_digests(digests)) {
    const fs::path file = directory / name;
    if (!fs::exists(file)) data_error("{} is missing: the model learned from it, put it back", file.string());
    check_digest(file, digest);
  }
}

void check_tokenizer_files(const config::Tokenizer& tokenizer, const std::string& digests) {
  const std::map<std::string, std::string> known = parse_digests(digests);
  for (const auto& [field, kept] : files_of(tokenizer, {})) {
    const auto digest = known.find(kept.filename().string());
    std::error_code ignored;
    if (digest != known.end() && fs::is_regular_file(tokenizer.*field, ignored))
      check_digest(tokenizer.*field, digest->second);
  }
}

config::Tokenizer kept_tokenizer(const config::Tokenizer& tokenizer, const fs::path& checkpoints) {
  const std::vector<KeptFile> files = files_of(tokenizer, checkpoints);
  const bool all_kept = std::all_of(files.begin(), files.end(), [](const KeptFile& file) {
    std::error_code ignored;
    return fs::is_regular_file(file.kept, ignored);
  });
  config::Tokenizer result = tokenizer;
  if (!all_kept) return result;
  for (const auto& [field, kept] : files) result.*field = kept.string();
  return result;
}

}  // namespace megalith::checkpoint
