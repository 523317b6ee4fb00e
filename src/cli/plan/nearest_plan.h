#pragma once

#include "plan/search/search.h"

namespace megalith::cli {

// Ends with a user error that says why no layout of a search works, and the nearest that does: without a pinned key, on
// another number of GPUs, with another batch.
[[noreturn]] void refuse(const plan::SearchRequest& request, const plan::SearchResult& result);

// The same where the config's own layout needs more memory than there is: with fewer samples at once, or recompute.
[[noreturn]] void refuse_own_layout(const plan::SearchRequest& request, const plan::PlannedLayout& own);

}  // namespace megalith::cli
