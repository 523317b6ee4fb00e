#pragma once

#include <array>
#include <string>
#include <string_view>

#include "plan/search/search.h"

namespace megalith::plan {

// A part of a step, its name in words and its ink (observe/draw/palette.h).
struct NamedPart {
  std::string_view name;
  std::string_view ink;
  double StepParts::*seconds;
};
extern const std::array<NamedPart, 11> kNamedParts;

std::string_view word_of(config::Granularity granularity);
// "t4 p8 v5+ c2 d16 b1"
std::string short_name(const Candidate& candidate);
// The same, with a mark where the model cannot tell the layout from another that was found to be the fastest.
std::string marked_name(const PlannedLayout& layout, const SearchResult& result);

double tokens_of_step(const RunFeatures& run);
// Share of the dense peak of the run's precision, attention counted in full (docs/design.md, section 6).
double mfu(const RunFeatures& run, double seconds);
// Of the whole model.
double parameters(const ModelShape& model);

}  // namespace megalith::plan
