#include "ops/plans.h"

namespace megalith::ops {

PlanTuning::PlanTuning(Stream& stream) : stream_(stream) {}
PlanTuning::~PlanTuning() = default;

PlanCounts plan_counts(Stream&) {
  return {};
}
void load_plans(Stream&, const std::filesystem::path&) {}
std::string plans_text(Stream&) {
  return "";
}
void take_plans(Stream&, const std::string&) {}
void save_plans(Stream&, const std::filesystem::path&) {}

}  // namespace megalith::ops
