#pragma once

#include "model/model_config.h"
#include "parallel/placement/parameter_table.h"

namespace megalith::model {

// The logical parameter table of an architecture. Matrices are (out, in); initialised as Megatron does: normal with
// init_std, output projections scaled by 1/sqrt(2 layers), biases zero, norms one.
parallel::ParameterTable logical_parameters(const ModelConfig& config);

std::string layer_name(int64_t layer, std::string_view rest);

}  // namespace megalith::model
