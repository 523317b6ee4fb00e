#pragma once

#include <string_view>
#include <vector>

#include "plan/search/search.h"

namespace megalith::plan {

// What a rank's share of its node sends to other nodes in a step. In closed form, of a mean stage: it orders layouts
// that are alike otherwise.
double bytes_between_nodes(const RunFeatures& run);

// Of two layouts whose steps the model cannot tell apart, why `a` is the better one: "more free memory", "fewer bytes
// between nodes", "fewer stages", "less recompute"; the first of these in which they differ. Empty where `b` is better
// or none differs. Memory counts in whole GiB, because what is outside of arenas is known no better.
std::string_view preferred_for(const PlannedLayout& a, const PlannedLayout& b);

// Fastest first, but for ties with the fastest, which begin with the preferred one. Ties that take longer than
// `longest` seconds stay where their time puts them.
void sort_by_time_and_preference(std::vector<PlannedLayout>& layouts, double longest);

}  // namespace megalith::plan
