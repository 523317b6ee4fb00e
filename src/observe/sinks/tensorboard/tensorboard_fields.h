#pragma once

#include <cstdint>
#include <string_view>

#include "core/metric_names.h"

namespace megalith::observe {

// Field numbers of tensorflow's event.proto, summary.proto and tensor.proto.
namespace event_field {
constexpr uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
}
namespace summary_field {
constexpr uint32_t kValue = 1;
}
namespace value_field {
constexpr uint32_t kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;
}
namespace metadata_field {
constexpr uint32_t kPluginData = 1;
}
namespace plugin_field {
constexpr uint32_t kName = 1;
}
namespace tensor_field {
constexpr uint32_t kDtype = 1, kShape = 2, kStringVal = 8;
constexpr int64_t kDtString = 7;
}  // namespace tensor_field
namespace shape_field {
constexpr uint32_t kDim = 2, kSize = 1;
}

constexpr std::string_view kConfigTag = "config/text_summary";

// Megatron's names of our numbers. Their step is the 1-based iteration; with kVsSamples behind it, the count of
// samples.
struct MegatronTag {
  std::string_view ours;
  std::string_view tag;
  bool also_vs_samples;
};
constexpr MegatronTag kMegatronTags[] = {{metric::kTrainLoss, "lm loss", true},
                                         {metric::kLearningRate, "learning-rate", true},
                                         {metric::kGradientNorm, "grad-norm", true},
                                         {"batch_size", "batch-size", true},
                                         {"ranks", "world-size", true},
                                         {metric::kStepTime, "iteration-time", false},
                                         {metric::kTflopsPerRank, "throughput", false},
                                         {metric::kValidationLoss, "lm loss validation", true},
                                         {"val_perplexity", "lm loss validation ppl", true}};
constexpr std::string_view kVsSamples = " vs samples";

constexpr bool is_megatron_tag(std::string_view tag) {
  for (const MegatronTag& each : kMegatronTags) {
    if (each.tag == tag) return true;
  }
  return false;
}

}  // namespace megalith::observe
