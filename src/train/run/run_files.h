#pragma once

#include <string>
#include <vector>

#include "config/run_config.h"

namespace megalith::train {

// In the run directory, held by rank 0 while it is at work there.
constexpr const char* kRunLock = ".megalith.lock";

// Whether a run learns from made-up tokens, because it has no data or wants none.
bool learns_made_up_tokens(const config::Data& data);
constexpr const char* kMadeUpTokens = "made-up tokens: give model.data.data_prefix";

constexpr const char* kTrainList = "model.data.data_prefix";
constexpr const char* kValidationList = "model.data.validation_prefix";
constexpr const char* kTestList = "model.data.test_prefix";

// Every list of datasets that a config gives, with its key; none for made-up tokens.
struct DataList {
  const char* key;
  const std::vector<std::string>& entries;
};
std::vector<DataList> data_lists(const config::Data& data);

// One line for each tokenizer or data file that the config names and this machine does not have.
std::vector<std::string> missing_tokenizer_files(const config::Tokenizer& tokenizer);
std::vector<std::string> missing_files(const config::Run& run);

// The same, and where none is missing, what a start would refuse of them: datasets that are damaged, or made with
// another tokenizer.
std::vector<std::string> file_problems(const config::Run& run);

// User errors that hold those lines, and what to do.
void require_tokenizer_files(const config::Tokenizer& tokenizer);
void require_files(const config::Run& run);
void require_usable_files(const config::Run& run);

}  // namespace megalith::train
