#include "engine/step_scales.h"

namespace megalith::engine {

StepScales::StepScales(const model::Precision& precision, const model::PrecisionRecipe& recipe,
                       const parallel::Groups& groups, Arena& memory)
    : precision_(precision), recipe_(recipe), groups_(groups) {
  if (exist()) findings_ = memory.allocate("fp8.findings", DType::i32, {precision.scales().amax.elements()});
}

void StepScales::reduce(Stream& stream) const {
  if (!exist()) return;
  for (comm::Communicator* group : {groups_.tensor.get(), groups_.replicas.get()})
    group->all_reduce(stream, precision_.scales().amax, comm::Reduction::max).wait(stream);
}

void StepScales::inspect(Stream& stream, double* squared_norm, double* saturations) const {
  if (!exist()) return;
  ops::inspect_amax(
      stream,
      {.scales = precision_.scales(), .squared_norm = squared_norm, .findings = findings_, .saturations = saturations});
}

bool StepScales::found_non_finite(Stream& stream) const {
  if (!exist()) return false;
  std::vector<int32_t> findings(static_cast<size_t>(findings_.elements()));
  copy(stream, findings_, Tensor(findings.data(), DType::i32, findings_.shape));
  stream.wait();
  return !first_non_finite(findings.data()).empty();
}

void StepScales::update(Stream& stream, const ops::UpdateScalars* update, ops::Remember remember) const {
  if (!exist()) return;
  ops::update_scales(stream, {.scales = precision_.scales(),
                              .update = update,
                              .margin = recipe_.margin,
                              .most_recent = recipe_.most_recent,
                              .remember = remember});
}

bool StepScales::has(const int32_t* findings, int64_t slot, ops::Finding finding) const {
  return findings[slot] == static_cast<int32_t>(finding);
}

std::string StepScales::first_non_finite(const int32_t* findings) const {
  using model::Precision;
  const int64_t slots = exist() ? findings_.elements() : 0;
  for (int64_t slot = 0; slot < slots; ++slot) {
    if (slot % Precision::kOperands != Precision::kGradient && has(findings, slot, ops::Finding::not_finite))
      return precision_.name_of_slot(slot);
  }
  for (int64_t slot = slots - 1; slot >= 0; --slot) {
    if (has(findings, slot, ops::Finding::not_finite)) return precision_.name_of_slot(slot);
  }
  return "";
}

std::vector<std::string> StepScales::saturated(const int32_t* findings) const {
  std::vector<std::string> names;
  for (int64_t slot = 0; exist() && slot < findings_.elements(); ++slot) {
    if (has(findings, slot, ops::Finding::saturated)) names.push_back(precision_.name_of_slot(slot));
  }
  return names;
}

}  // namespace megalith::engine
