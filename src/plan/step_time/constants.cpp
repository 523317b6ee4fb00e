#include "plan/step_time/constants.h"

// Written by scripts/fit-plan from the published runs of tiers A and B (MAPE tier A 2.54 %, tier B 4.45 %);
// docs/planning.md says more.
namespace megalith::plan {

const Constants& fitted_constants() {
  static constexpr Constants kFitted{
      .ampere_gemm_share = 0.8597,
      .hopper_gemm_share = 0.6534,
      .fp8_gemm_share = 0.5699,
      .gemm_traffic = 0.622,
      .memory_share = 0.7954,
      .attention_share = 0.6111,
      .unfused_share = 0.2806,
      .softmax_traffic = 0.7158,
      .link_share = 0.8009,
      .network_share = 0.7198,
      .call_latency_s = 1.213e-05,
      .network_hop_s = 6.535e-06,
      .overlapped_tensor = 0.06228,
      .blocking_p2p = 0.6475,
      .overlapped_p2p = 0.3451,
      .visit_s = 0.0001881,
      .blocking_layer_s = 0.01769,
      .eager_layer_s = 0.002485,
      .step_s = 0.04777,
      .jitter = 0.005152,
  };
  return kFitted;
}

}  // namespace megalith::plan
