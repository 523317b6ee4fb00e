#pragma once

#include <string>

#include "plan/price.h"
#include "plan/search/search.h"

namespace megalith::plan {

// What was found as an HTML page that fetches nothing: the best in numbers, step time against memory of those that no
// other beats in both, the parts of each layout's step, and what the stages of the best do when. `result` has a best.
std::string plan_page(const SearchRequest& request, const SearchResult& result, const Circumstances& circumstances);

}  // namespace megalith::plan
