#pragma once

#include <string>

#include "plan/price.h"
#include "plan/search/search.h"

namespace megalith::plan {

Price price_of(const PlannedLayout& layout, const Cluster& cluster, const Circumstances& circumstances);

// What was searched and the ranked table of what was found; tables in at most `width` columns of text (0: no limit).
std::string describe_search(const SearchRequest& request, const SearchResult& result,
                            const Circumstances& circumstances, size_t width = 0);
// One layout: where its time and its memory go, days and money.
std::string explain(const SearchRequest& request, const PlannedLayout& layout, const Circumstances& circumstances);
// Why the best was preferred to the fastest, as the end of a sentence; empty where it is the fastest.
std::string describe_preference(const SearchResult& result);
// What each of the others loses to the first, and on what.
std::string explain_losses(const std::vector<PlannedLayout>& layouts);

// A line for each cluster, with the fastest layout there.
struct PlannedCluster {
  Cluster cluster;
  PlannedLayout best;
};
std::string compare_clusters(const std::vector<PlannedCluster>& clusters, const Circumstances& circumstances,
                             size_t width = 0);

// A recipe of overrides that lays out the run like this, with the reasons in comments.
std::string to_yaml(const SearchRequest& request, const SearchResult& result);

}  // namespace megalith::plan
