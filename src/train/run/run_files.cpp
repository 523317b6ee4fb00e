#include "train/run/run_files.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include "core/error.h"
#include "data/files/indexed_dataset.h"
#include "data/order/blend.h"
#include "data/tokenizer/data_tokenizer.h"

namespace megalith::train {

namespace {

bool is_readable(const std::string& path) {
  return ::access(path.c_str(), R_OK) == 0;
}

void refuse(const std::vector<std::string>& missing, const char* advice) {
  constexpr size_t kShown = 10;
  if (missing.empty()) return;
  const size_t shown = std::min(kShown, missing.size());
  const std::string more = missing.size() > shown ? fmt::format("\n  and {} more", missing.size() - shown) : "";
  user_error("{}{}{}", fmt::join(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(shown), "\n  "), more,
             advice);
}

// Opening a dataset that is not there says it best: names that are near are in the message.
void add_missing_datasets(const DataList& list, std::vector<std::string>& missing, int64_t validation_files = 0,
                          int64_t test_files = 0) {
  try {
    const data::DataSources sources = data::parse_data_prefix(list.entries, list.key);
    for (const std::string& prefix : sources.prefixes) {
      if (is_readable(prefix + ".idx") && is_readable(prefix + ".bin")) continue;
      try {
        data::IndexedDataset{prefix};
      } catch (const Error& error) {
        missing.emplace_back(error.what());
      }
    }
    if (validation_files + test_files > 0)
      data::files_of_split(sources, data::Split::train, validation_files, test_files);
  } catch (const Error& error) {
    missing.emplace_back(error.what());
  }
}

}  // namespace

bool learns_made_up_tokens(const config::Data& data) {
  using enum config::DataImpl;
  return data.data_impl == mock || (data.data_impl == automatic && data.data_prefix.empty());
}

std::vector<DataList> data_lists(const config::Data& data) {
  if (learns_made_up_tokens(data)) return {};
  std::vector<DataList> lists{{kTrainList, data.data_prefix}};
  if (!data.validation_prefix.empty()) lists.push_back({kValidationList, data.validation_prefix});
  if (!data.test_prefix.empty()) lists.push_back({kTestList, data.test_prefix});
  return lists;
}

std::vector<std::string> missing_tokenizer_files(const config::Tokenizer& tokenizer) {
  std::vector<std::string> missing;
  const auto look_for = [&](const char* key, const std::string& path) {
    if (!path.empty() && !is_readable(path)) missing.push_back(fmt::format("cannot open {} ({})", path, key));
  };
  look_for("model.tokenizer.vocab_file", tokenizer.vocab_file);
  look_for("model.tokenizer.merge_file", tokenizer.merge_file);
  look_for("model.tokenizer.model", tokenizer.model);
  if (tokenizer.type == "GPT2BPETokenizer" && tokenizer.vocab_file.empty() != tokenizer.merge_file.empty()) {
    missing.push_back(fmt::format("model.tokenizer.{} is not given: {} needs vocab_file and merge_file, or neither",
                                  tokenizer.vocab_file.empty() ? "vocab_file" : "merge_file", tokenizer.type));
  }
  return missing;
}

std::vector<std::string> missing_files(const config::Run& run) {
  std::vector<std::string> missing = missing_tokenizer_files(run.model.tokenizer);
  const config::Data& data = run.model.data;
  for (const DataList& list : data_lists(data)) {
    const bool is_split = list.key == std::string_view(kTrainList);  // by whole files, where that is asked for
    add_missing_datasets(list, missing, is_split ? data.validation_files : 0, is_split ? data.test_files : 0);
  }
  return missing;
}

std::vector<std::string> file_problems(const config::Run& run) {
  std::vector<std::string> problems = missing_files(run);
  if (!problems.empty()) return problems;
  const auto try_out = [&](const auto& open) {
    try {
      open();
    } catch (const Error& error) {
      problems.emplace_back(error.what());
    }
  };
  for (const DataList& list : data_lists(run.model.data)) {
    for (const std::string& prefix : data::parse_data_prefix(list.entries, list.key).prefixes)
      try_out([&] { data::IndexedDataset{prefix}; });
  }
  try_out([&] { data::check_tokenizer_of_data(run.model.data, run.model.tokenizer); });
  return problems;
}

void require_tokenizer_files(const config::Tokenizer& tokenizer) {
  refuse(missing_tokenizer_files(tokenizer),
         "\n  `megalith data train-tokenizer` makes a tokenizer; for that of recipes/demo.yaml run scripts/demo");
}

void require_files(const config::Run& run) {
  require_tokenizer_files(run.model.tokenizer);
  refuse(missing_files(run), "");
}

void require_usable_files(const config::Run& run) {
  require_files(run);
  refuse(file_problems(run), "");
}

}  // namespace megalith::train
