#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "model/model_config.h"
#include "ops/operands/scales.h"
#include "parallel/placement/parameter_store.h"

namespace megalith::model {

// How an operand of a GEMM is stored.
struct OperandFormat {
  DType dtype = DType::f32;
  Scaling scaling = Scaling::none;
  ops::Slot slot = {};  // under delayed scaling: of this logical operand, for the whole step
  Tensor largest = {};  // (1) f32, under current scaling: the largest number of the type
  int margin = 0;

  bool is_scaled() const { return scaling != Scaling::none; }
};

// What the GEMMs of one linear layer read.
struct LinearFormat {
  OperandFormat input;
  OperandFormat weight;
  OperandFormat gradient;         // of the output
  ops::Operand kept_weight = {};  // fp8 copies that are made once a step; absent: made where they are read
};

// The precision recipe at work: the formats of a rank's linear layers and, where that is fp8, their slots and the
// copies of their weights. A slot belongs to a logical operand (input, weight or gradient of a linear layer); all ranks
// that hold a part of it have the same scale.
class Precision {
 public:
  enum Operands : int64_t { kInput, kWeight, kGradient, kOperands };

  // What the linear layers of `layers` compute with. `state` holds slots and histories, `weights` the copies; the store
  // must outlive it. Weights that come and go have no copies that stay.
  Precision(const ModelConfig& config, const parallel::ParameterStore& store, const std::vector<int64_t>& layers,
            Arena& state, Arena& weights);
  // Nothing is scaled: bf16 or fp32.
  explicit Precision(DType compute) : compute_(compute) {}

  LinearFormat of(const std::string& linear) const;

  bool has_slots() const { return static_cast<bool>(scales_.amax); }
  const ops::Scales& scales() const { return scales_; }
  // Linear layers with slots, in order: slot 3 i + operand.
  const std::vector<std::string>& linears() const { return linears_; }
  // (3, steps) f32: the histories of a linear layer's operands.
  Tensor history_of(size_t linear) const;
  // What the histories depend on beside the numbers that they hold; empty where there are none.
  std::string terms() const;
  // "the input of layers.3.mlp.up"
  std::string name_of_slot(int64_t slot) const;

  // No operand was seen yet.
  void forget_amax(Stream& stream) const;
  // Scales of 1 and no history: before the first step.
  void reset(Stream& stream) const;

 private:
  OperandFormat format_of(size_t linear, Operands operand) const;

  DType compute_ = DType::f32;
  PrecisionRecipe recipe_;
  std::vector<std::string> linears_;
  std::unordered_map<std::string, size_t> index_;
  ops::Scales scales_;
  std::vector<ops::Operand> kept_weights_;
};

}  // namespace megalith::model
