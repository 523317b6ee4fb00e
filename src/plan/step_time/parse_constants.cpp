#include <algorithm>

#include "config/scalar.h"
#include "core/error.h"
#include "plan/step_time/constants.h"
#include "plan/step_time/csv.h"

namespace megalith::plan {

const std::array<NamedConstant, kConstants> kNamedConstants{{
    {"ampere_gemm_share", &Constants::ampere_gemm_share},
    {"hopper_gemm_share", &Constants::hopper_gemm_share},
    {"fp8_gemm_share", &Constants::fp8_gemm_share},
    {"gemm_traffic", &Constants::gemm_traffic},
    {"memory_share", &Constants::memory_share},
    {"attention_share", &Constants::attention_share},
    {"unfused_share", &Constants::unfused_share},
    {"softmax_traffic", &Constants::softmax_traffic},
    {"link_share", &Constants::link_share},
    {"network_share", &Constants::network_share},
    {"call_latency_s", &Constants::call_latency_s},
    {"network_hop_s", &Constants::network_hop_s},
    {"overlapped_tensor", &Constants::overlapped_tensor},
    {"blocking_p2p", &Constants::blocking_p2p},
    {"overlapped_p2p", &Constants::overlapped_p2p},
    {"visit_s", &Constants::visit_s},
    {"blocking_layer_s", &Constants::blocking_layer_s},
    {"eager_layer_s", &Constants::eager_layer_s},
    {"step_s", &Constants::step_s},
    {"jitter", &Constants::jitter},
}};

Constants parse_constants(std::string_view text, const std::string& file) {
  const Csv csv = parse_csv(text, file);
  if (csv.columns != std::vector<std::string>{"name", "value"})
    user_error("{} is no table of constants: its first line must be 'name,value'", file);
  Constants constants = fitted_constants();
  for (const Csv::Record& record : csv.records) {
    const std::string& name = record.cells[0];
    const std::string& cell = record.cells[1];
    const auto* constant = std::find_if(kNamedConstants.begin(), kNamedConstants.end(),
                                        [&](const NamedConstant& c) { return c.name == name; });
    if (constant == kNamedConstants.end())
      user_error("{}, line {}: there is no constant '{}' (src/plan/step_time/constants.h has them)", file, record.line,
                 name);
    const std::optional<double> value = config::read_double(cell);
    if (!value || *value <= 0) user_error("{}, line {}: '{}' is not a number above 0", file, record.line, cell);
    constants.*constant->value = *value;
  }
  return constants;
}

}  // namespace megalith::plan
