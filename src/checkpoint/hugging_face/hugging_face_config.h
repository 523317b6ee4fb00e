#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/hugging_face/hugging_face_names.h"
#include "config/run_config.h"
#include "core/dtype.h"

namespace megalith::checkpoint {

// What config.json says, and what Megalith calls it.

// The family that a model belongs to; a user error says why it belongs to none.
HuggingFaceFamily family_of(const config::Model& model);

struct ExportedConfig {
  const config::Model& model;  // effective
  int64_t vocabulary = 0;      // without padding
  int32_t end_of_text = -1;    // its id; -1: not known
  DType dtype = DType::f32;
};
std::string write_hugging_face_config(const ExportedConfig& config);

struct ImportedConfig {
  HuggingFaceFamily family = HuggingFaceFamily::gpt2;
  config::Model model;
  int64_t vocabulary = 0;
  std::vector<std::string> unused;  // keys that change neither the weights nor what is computed with them
};
// Refuses with a data error that begins with `where` and names the key what Megalith's models cannot do.
ImportedConfig read_hugging_face_config(std::string_view text, const std::string& where);

}  // namespace megalith::checkpoint
