#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/run_config.h"

// The files of a tokenizer lie beside the checkpoints of the model that learned from it, so that the model is asked
// through the same one: wherever the directory went, and whatever has become of the files since.

namespace megalith::checkpoint {

// Copies the files to `checkpoints`, a directory of steps. Where it holds steps, what they were learned with stays:
// `digests` says what that was, if it is known. What could not be kept, or is no longer the same, is told.
std::vector<std::string> keep_tokenizer(const config::Tokenizer& tokenizer, const std::filesystem::path& checkpoints,
                                        const std::string& digests = "");

// Of the files that are kept, for the state of a checkpoint: "merges.txt=<digest> vocab.json=<digest>".
inline constexpr const char* kTokenizerDigests = "tokenizer";
std::string kept_digests(const config::Tokenizer& tokenizer, const std::filesystem::path& checkpoints);

// Data error, which names the file, unless those that are kept are all there and have these digests. Nothing to compare
// where there is no directory of them.
void check_kept_tokenizer(const std::filesystem::path& checkpoints, const std::string& digests);
// The same for the files that a tokenizer names, wherever they are. What is missing is for its reader to say.
void check_tokenizer_files(const config::Tokenizer& tokenizer, const std::string& digests);

// The tokenizer with its kept files in place of those it names, if all of them are there.
config::Tokenizer kept_tokenizer(const config::Tokenizer& tokenizer, const std::filesystem::path& checkpoints);

}  // namespace megalith::checkpoint
