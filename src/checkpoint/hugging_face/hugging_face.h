#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/hugging_face/hugging_face_names.h"
#include "checkpoint/loaded.h"
#include "config/run_config.h"

namespace megalith::checkpoint {

// Weights to and from the directories that transformers reads and writes (docs/checkpoints.md). What is made appears at
// `output` when all of it is there; an `output` that holds anything is a user error.

// The rows that pad the vocabulary are no part of the model and stay out of the files that transformers reads. They are
// kept here, in safetensors layout under our names, so that coming back gives the same bits. The name ends so that
// nobody who loads "*.safetensors" takes them for weights.
inline constexpr const char* kPaddingFile = "padding_rows.megalith";

// What an import writes beside the checkpoint, for `megalith train -c`.
inline constexpr const char* kRecipeFile = "recipe.yaml";

struct Converted {
  HuggingFaceFamily family = HuggingFaceFamily::gpt2;
  DType dtype = DType::f32;
  int64_t parameters = 0;  // without padding
  int64_t bytes = 0;
  int64_t files = 0;                 // of weights
  std::vector<std::string> written;  // names in the output
  std::vector<std::string> notes;    // what a person should know
};

struct ExportOptions {
  std::optional<DType> dtype;               // nothing: that of the weights; f32 takes the masters of bf16 weights
  int64_t max_shard_bytes = 5'000'000'000;  // of a file, unless a single parameter has more
};

// `run` is the checkpoint's effective config. Holds one file's tensors in memory at a time.
Converted export_hugging_face(Loaded& checkpoint, const config::Run& run, const std::filesystem::path& output,
                              const ExportOptions& options = {});

struct ImportOptions {
  std::optional<DType> dtype;          // nothing: the narrowest that holds every tensor exactly
  std::vector<std::string> overrides;  // key=value, changes to the config that comes with the weights
};

// Makes a directory of checkpoints with one of step 0 that holds weights alone, and a recipe that trains on from it.
// Holds the model in memory once.
Converted import_hugging_face(const std::filesystem::path& source, const std::filesystem::path& output,
                              const ImportOptions& options = {});

}  // namespace megalith::checkpoint
