#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/placement/parameter_table.h"

namespace megalith::checkpoint {

// The architectures of transformers that Megalith's models can be.
enum class HuggingFaceFamily { gpt2, llama };

// Where a logical parameter lies in a Hugging Face directory. `*` stands for the number of the layer.
struct NameRule {
  std::string_view ours;
  // Several: one for each of the matrices that are fused here (ParameterSpec::blocks), in their order.
  std::vector<std::string_view> theirs;
  bool transposed = false;  // theirs is (in, out)
  bool by_token = false;    // a row for each token: the rows that pad the vocabulary stay behind
};

struct FamilyNames {
  std::string_view model_type;
  std::string_view architecture;
  std::string_view prefix;  // of the names in a file that has a head; without one some files leave it out
  std::vector<NameRule> rules;
  std::vector<std::string_view> ignored;  // buffers that older files hold; nothing in them is learned
};

// Both directions go by this one table.
const FamilyNames& names_of(HuggingFaceFamily family);

// A tensor of theirs: some rows of a parameter of ours.
struct ForeignTensor {
  std::string name;
  Shape shape;  // as it is stored there
  int64_t first_row = 0;
  int64_t rows = 0;
};

struct ForeignParameter {
  const parallel::ParameterSpec* spec = nullptr;
  std::vector<ForeignTensor> tensors;
  bool transposed = false;
  int64_t padding_rows = 0;  // at the end of the parameter, in no tensor of theirs
};

// Every parameter of the table, which must outlive the result, in its order.
std::vector<ForeignParameter> foreign_parameters(HuggingFaceFamily family, const parallel::ParameterTable& table,
                                                 int64_t vocabulary);

// A name that may stand in a file of the family without being one of its parameters.
bool is_ignored(HuggingFaceFamily family, std::string_view name);

}  // namespace megalith::checkpoint
