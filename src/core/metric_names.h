#pragma once

#include <string_view>

// The names under which Metrics go to every log; docs/metrics.md says what each one is. NeMo's where NeMo has one.
namespace megalith::metric {

// Metrics::kind.
constexpr const char* kTrain = "train";
constexpr const char* kValidation = "validation";

constexpr const char* kTrainLoss = "reduced_train_loss";
constexpr const char* kValidationLoss = "val_loss";
constexpr const char* kLearningRate = "lr";
constexpr const char* kGradientNorm = "grad_norm";
constexpr const char* kGlobalStep = "global_step";
constexpr const char* kConsumedSamples = "consumed_samples";
constexpr const char* kGlobalBatchSize = "global_batch_size";  // where it grows
constexpr const char* kEpoch = "epoch";
constexpr const char* kSkipped = "skipped";                       // 1 where the update was not finite
constexpr const char* kSaturatedOperands = "saturated_operands";  // under delayed scaling of fp8

constexpr const char* kStepTime = "step_time";
constexpr const char* kMeanStepTime = "train_step_timing in s";  // over the last few steps
constexpr const char* kBackwardTime = "train_backward_timing in s";
constexpr const char* kDataWait = "data_wait";
constexpr const char* kCheckpointStall = "checkpoint_stall";
constexpr const char* kCommunicationExposed = "communication_exposed";
constexpr const char* kSlowestRank = "slowest_rank";
constexpr const char* kRankSpread = "rank_spread";

constexpr const char* kTokensPerSecond = "tokens_per_second";
constexpr const char* kTflops = "tflops";
constexpr const char* kTflopsPerRank = "tflops_per_rank";
constexpr const char* kMfu = "mfu";
constexpr const char* kFloorFraction = "floor_fraction";

// Followed by the arena's name, with '_' for ' '.
constexpr std::string_view kMemory = "memory.";

}  // namespace megalith::metric
