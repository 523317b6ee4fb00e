#include "resilience/facts.h"

#include "resilience/names.h"

namespace megalith::resilience {

namespace {
constexpr std::array<const char*, kSymptoms> kSymptomWords = {
    "none",     "rank_ended", "user_error",  "call_failed", "not_finite",  "load_failed",  "rank_stuck",
    "all_wait", "livelock",   "store_ended", "node_gone",   "stop_failed", "check_failed", "start_failed"};
constexpr std::array<const char*, kFactKinds> kFactWords = {
    "lead",    "heard",    "silent",      "fault",   "overdue",        "joined",       "loaded",
    "learned", "progress", "completed",   "stopped", "stop_requested", "order_done",   "order_failed",
    "checked", "holdings", "store_ready", "claimed", "claim_conflict", "claim_failed", "tick"};
}  // namespace

const char* name_of(Symptom symptom) {
  return word_of(kSymptomWords, symptom);
}
const char* name_of(FactKind kind) {
  return word_of(kFactWords, kind);
}
std::optional<Symptom> symptom_named(std::string_view name) {
  return value_of<Symptom>(kSymptomWords, name);
}
std::optional<FactKind> fact_kind_named(std::string_view name) {
  return value_of<FactKind>(kFactWords, name);
}

}  // namespace megalith::resilience
