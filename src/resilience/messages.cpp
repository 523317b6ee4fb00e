#include "resilience/messages.h"

#include <fmt/format.h>

#include "resilience/names.h"

namespace megalith::resilience {

namespace {
constexpr std::array<const char*, kSections> kSectionWords = {"boot", "rendezvous", "load",     "plans", "step",
                                                              "wait", "save",       "validate", "end"};
constexpr std::array<const char*, kEndingKinds> kEndingWords = {"none", "done",   "stopped", "user",       "io",
                                                                "data", "device", "comm",    "non_finite", "internal"};
constexpr std::array<const char*, kTiers> kTierWords = {"memory", "local", "persistent"};
constexpr std::array<const char*, kOutcomes> kOutcomeWords = {"done", "failed", "refused"};
constexpr std::array<const char*, kCheckOutcomes> kCheckWords = {"unknown", "ok", "failed"};
constexpr std::array<const char*, kOrderKinds> kOrderWords = {"greet", "inspect",     "kill",  "stop",   "check",
                                                              "tell",  "serve_store", "start", "finish", "dismiss"};
}  // namespace

std::string protocol_name(int64_t version) {
  return fmt::format("{}.{}", version / 1000, version % 1000);
}

const char* name_of(Section section) {
  return word_of(kSectionWords, section);
}
const char* name_of(EndingKind kind) {
  return word_of(kEndingWords, kind);
}
const char* name_of(Tier tier) {
  return word_of(kTierWords, tier);
}
const char* name_of(Outcome outcome) {
  return word_of(kOutcomeWords, outcome);
}
const char* name_of(CheckOutcome outcome) {
  return word_of(kCheckWords, outcome);
}
const char* name_of(OrderKind kind) {
  return word_of(kOrderWords, kind);
}

std::optional<Tier> tier_named(std::string_view name) {
  return value_of<Tier>(kTierWords, name);
}

}  // namespace megalith::resilience
