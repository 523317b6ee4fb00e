#pragma once

#include "checkpoint/loaded.h"
#include "config/run_config.h"
#include "core/stream.h"
#include "model/precision.h"
#include "optim/optimizer.h"

namespace megalith::train {

struct RestoreParts {
  const parallel::ParameterTable& table;
  const parallel::ParameterStore& store;
  const optim::Optimizer* optimizer = nullptr;  // absent: weights alone
  bool has_moments = true;                      // else those of the optimizer are left as they are
};

// User error, before anything is read, where a checkpoint is of another model.
void check_fit(const checkpoint::Loaded& checkpoint, const RestoreParts& parts);

// User error where the heads are others than the model was trained with, though all shapes may fit.
void check_heads(const checkpoint::Loaded& checkpoint, const config::Model& model);

// Fills what this rank holds from a checkpoint of any layout and precision. The host waits; no other rank is asked.
void restore(Stream& stream, checkpoint::Loaded& checkpoint, const RestoreParts& parts);

// Fills the histories of this rank's fp8 operands, the newest steps where they are of another length. False, and
// nothing has changed, where the checkpoint lacks some of them or has them for other formats.
bool restore_histories(Stream& stream, checkpoint::Loaded& checkpoint, const model::Precision& precision);

// Under which a checkpoint's state has Precision::terms().
constexpr const char* kPrecisionTerms = "fp8";

}  // namespace megalith::train
