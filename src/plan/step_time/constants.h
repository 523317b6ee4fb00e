#pragma once

#include <array>
#include <string>
#include <string_view>

namespace megalith::plan {

// What the model of step time cannot know from data sheets. They are the same for all runs: none belongs to a model or
// a source. constants.cpp says how they were fitted.
struct Constants {
  double ampere_gemm_share;  // of the 16-bit peak, before tile and wave losses
  double hopper_gemm_share;
  double fp8_gemm_share;     // of the fp8 peak
  double gemm_traffic;       // share of a GEMM's operands and result whose traffic arithmetic does not hide
  double memory_share;       // of the memory's bandwidth, in memory-bound kernels
  double attention_share;    // of the 16-bit peak, forward, at infinite length
  double unfused_share;      // of the GEMM share, in the batched GEMMs of unfused attention
  double softmax_traffic;    // of the passes over unfused attention's scores, the share that reaches memory
  double link_share;         // of scale-up links
  double network_share;      // of the network between nodes
  double call_latency_s;     // of a collective within a node
  double network_hop_s;      // of a ring between nodes, per node and bucket
  double overlapped_tensor;  // share of tensor-parallel collectives that overlap does not hide
  double blocking_p2p;       // share of a pipeline message's time that a stage loses
  double overlapped_p2p;     // the same where messages overlap
  double visit_s;            // per chunk and micro batch of a pipeline: scheduling on the host
  double blocking_layer_s;   // per layer and micro batch, where the host waits for each kernel
  double eager_layer_s;      // of the host, to launch the kernels of a layer's forward from Python
  double step_s;             // per step, beside all else
  double jitter;             // per doubling of GPUs beyond 8, as a share of the step
};

struct NamedConstant {
  std::string_view name;
  double Constants::*value;
};
constexpr size_t kConstants = 20;
extern const std::array<NamedConstant, kConstants> kNamedConstants;

const Constants& fitted_constants();

// "name,value" lines, which replace fitted constants; `file` for messages. A user error where a name is unknown or a
// value is not above 0.
Constants parse_constants(std::string_view text, const std::string& file);

}  // namespace megalith::plan
