#include "parallel/placement/buckets.h"

#include <numeric>

namespace megalith::parallel {

namespace {

using Members = std::vector<size_t>;

bool stands_alone(const PlacedParameter& parameter) {
  return parameter.is_shared || parameter.spans_chunks;
}

bool fit_together(const PlacedParameter& a, const PlacedParameter& b) {
  return a.chunk == b.chunk && !stands_alone(a) && !stands_alone(b);
}

// Indices of the parameters of each bucket.
std::vector<Members> group_in_backward_order(const std::vector<PlacedParameter>& parameters, int64_t bound) {
  std::vector<size_t> order(parameters.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  std::vector<Members> groups;
  int64_t elements = 0;
  for (const size_t index : order) {
    const int64_t more = parameters[index].shape.elements();
    const bool joins = !groups.empty() && fit_together(parameters[groups.back().back()], parameters[index]) &&
                       elements + more <= bound;
    if (!joins) groups.emplace_back();
    elements = joins ? elements + more : more;
    groups.back().push_back(index);
  }
  return groups;
}

Slab& slab_for(Bucket& bucket, const PlacedParameter& parameter) {
  const Slab wanted{.width = parameter.columns(),
                    .gradient_by_product = parameter.gradient_by_product,
                    .sums_over_tensor = parameter.sums_over_tensor()};
  const auto found = std::find_if(bucket.slabs.begin(), bucket.slabs.end(), [&](const Slab& slab) {
    return slab.width == wanted.width && slab.gradient_by_product == wanted.gradient_by_product &&
           slab.sums_over_tensor == wanted.sums_over_tensor;
  });
  return found != bucket.slabs.end() ? *found : bucket.slabs.emplace_back(wanted);
}

void append(Slab& slab, size_t index, const PlacedParameter& parameter) {
  const int64_t aligned_rows = kParameterAlignment / std::gcd(kParameterAlignment, slab.width);
  const int64_t first_row = round_up(slab.rows, aligned_rows);
  slab.entries.push_back({.parameter = index, .first_row = first_row});
  slab.rows = first_row + parameter.rows();
}

}  // namespace

bool PlacedParameter::sums_over_tensor() const {
  return std::all_of(pieces.begin(), pieces.end(), [](const Piece& piece) { return piece.gradient_is_partial; });
}

int64_t Bucket::elements() const {
  int64_t sum = 0;
  for (const Slab& slab : slabs) sum += slab.elements();
  return sum;
}

std::vector<Bucket> make_buckets(const std::vector<PlacedParameter>& parameters, const BucketOptions& options) {
  std::vector<Bucket> buckets;
  for (const Members& members : group_in_backward_order(parameters, options.elements)) {
    const PlacedParameter& first = parameters[members.front()];
    Bucket bucket{.chunk = first.chunk,
                  .is_resident = !options.shards_weights || first.spans_chunks,
                  .is_shared = first.is_shared};
    for (const size_t index : members) append(slab_for(bucket, parameters[index]), index, parameters[index]);
    for (Slab& slab : bucket.slabs) slab.rows = round_up(slab.rows, options.shards);
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

}  // namespace megalith::parallel
