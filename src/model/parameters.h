#pragma once

#include <array>
#include <string>

#include "model/model_config.h"
#include "parallel/placement/parameter_table.h"

namespace megalith::model {

// The logical parameter table of an architecture. Matrices are (out, in); initialised as Megatron does: normal with
// init_std, output projections scaled by 1/sqrt(2 layers), biases zero, norms one.
parallel::ParameterTable logical_parameters(const ModelConfig& config);

std::string layer_name(int64_t layer, std::string_view rest);
// The linear layers of a block, in the order of forward: qkv, out, up (or gate and up), down.
std::array<std::string, 4> linear_names(const ModelConfig& config, int64_t layer);

}  // namespace megalith::model
