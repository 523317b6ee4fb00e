#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/run_config.h"

// The files of a tokenizer lie beside the checkpoints of the model that learned from it, so that the model is asked
// through the same one: wherever the directory went, and whatever has become of the files since.

namespace megalith::checkpoint {

// Copies the files to `checkpoints`, a directory of steps. Where it holds steps, what they were learned with stays.
// What could not be kept, or is no longer the same, is told.
std::vector<std::string> keep_tokenizer(const config::Tokenizer& tokenizer, const std::filesystem::path& checkpoints);

// The tokenizer with its kept files in place of those it names, if all of them are there.
config::Tokenizer kept_tokenizer(const config::Tokenizer& tokenizer, const std::filesystem::path& checkpoints);

}  // namespace megalith::checkpoint
