#include "ops/vocabulary/row_order.h"

#include <algorithm>
#include <numeric>

namespace megalith::ops::cpu {

void order_rows(Stream&, const OrderRows& args) {
  const int64_t count = args.given.elements();
  const int32_t* given = args.given.as<int32_t>();
  for (int64_t row = 0; row < count; ++row) {
    MEGALITH_CHECK(0 <= given[row] && given[row] < args.limit, "key {} in row {}, where all are below {}", given[row],
                   row, args.limit);
  }
  auto* rows = args.order.rows.as<int32_t>();
  std::iota(rows, rows + count, 0);
  std::stable_sort(rows, rows + count, [&](int32_t a, int32_t b) { return given[a] < given[b]; });
  std::transform(rows, rows + count, args.order.keys.as<int32_t>(), [&](int32_t row) { return given[row]; });
}

}  // namespace megalith::ops::cpu
