#pragma once

#include <string>
#include <vector>

#include "model/precision.h"
#include "ops/operands/scales.h"
#include "parallel/groups.h"

namespace megalith::engine {

// The scales of a stage's fp8 operands from step to step, under delayed scaling: constant within a step, and the same
// on all ranks that hold a part of an operand. Nothing to do where no operand has a slot.
class StepScales {
 public:
  // All that it is given must outlive it.
  StepScales(const model::Precision& precision, const model::PrecisionRecipe& recipe, const parallel::Groups& groups,
             Arena& memory);

  bool exist() const { return precision_.has_slots(); }

  // At the end of the passes of a step: one amax for all ranks of the stage.
  void reduce(Stream& stream) const;
  // What the amax say, as ops::InspectAmax has it, into findings().
  void inspect(Stream& stream, double* squared_norm, double* saturations) const;
  // Whether the last inspection found an amax that is not finite. Waits for it.
  bool found_non_finite(Stream& stream) const;
  // The scales of the next step. `update`: of this one; null where it has none.
  void update(Stream& stream, const ops::UpdateScalars* update, ops::Remember remember) const;

  // (slots) i32, of ops::Finding.
  const Tensor& findings() const { return findings_; }
  // Of findings on the host, the operand that was the first to hold an infinity or NaN in the order of a step; empty:
  // none.
  std::string first_non_finite(const int32_t* findings) const;
  std::vector<std::string> saturated(const int32_t* findings) const;

 private:
  bool has(const int32_t* findings, int64_t slot, ops::Finding finding) const;

  const model::Precision& precision_;
  model::PrecisionRecipe recipe_;
  const parallel::Groups& groups_;
  Tensor findings_;
};

}  // namespace megalith::engine
