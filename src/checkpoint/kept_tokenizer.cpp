#include "checkpoint/kept_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/layout.h"
#include "core/file.h"

namespace megalith::checkpoint {

namespace fs = std::filesystem;

namespace {

// Each file under a name of its own, whatever it was called.
struct KeptFile {
  std::string config::Tokenizer::*field;
  fs::path kept;
};

std::vector<KeptFile> files_of(const config::Tokenizer& tokenizer, const fs::path& checkpoints) {
  const fs::path directory = checkpoints / "tokenizer";
  const fs::path model = "model" + fs::path(tokenizer.model).extension().string();
  std::vector<KeptFile> files{{&config::Tokenizer::vocab_file, directory / "vocab.json"},
                              {&config::Tokenizer::merge_file, directory / "merges.txt"},
                              {&config::Tokenizer::model, directory / model}};
  std::erase_if(files, [&](const KeptFile& file) { return (tokenizer.*file.field).empty(); });
  return files;
}

bool holds_steps(const fs::path& checkpoints) {
  std::error_code ignored;
  const fs::directory_iterator entries(checkpoints, ignored);
  return std::any_of(begin(entries), end(entries),
                     [](const auto& entry) { return parse_step_name(entry.path().filename().string()).has_value(); });
}

}  // namespace

std::vector<std::string> keep_tokenizer(const config::Tokenizer& tokenizer, const fs::path& checkpoints) {
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
      make_directory(kept.parent_path());
      replace_file(kept, content);
    } catch (const std::exception& error) {
      notes.push_back(fmt::format("the tokenizer cannot be kept with the checkpoints: {}", error.what()));
    }
  }
  return notes;
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
