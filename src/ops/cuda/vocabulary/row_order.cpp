#include "ops/vocabulary/row_order.h"

#include <limits>

#include "ops/cuda/launch.h"
#include "ops/cuda/launch_args.h"
#include "ops/cuda/vocabulary/row_order_launch.h"

namespace megalith::ops::cuda {

void order_rows(Stream& stream, const OrderRows& args) {
  const int64_t count = args.given.elements();
  MEGALITH_CHECK(count < std::numeric_limits<int32_t>::max() && args.limit < std::numeric_limits<int32_t>::max(),
                 "{} rows with keys below {}", count, args.limit);
  const bool fits = launch_row_order({.given = args.given.as<int32_t>(),
                                      .limit = args.limit,
                                      .count = count,
                                      .keys = args.order.keys.as<int32_t>(),
                                      .rows = args.order.rows.as<int32_t>(),
                                      .scratch = args.scratch.as<int32_t>(),
                                      .scratch_elements = args.scratch.elements()},
                                     stream.native());
  MEGALITH_CHECK(fits, "{} rows do not fit into {} words of scratch", count, args.scratch.elements());
  check_launch("order_rows", args.given);
}

}  // namespace megalith::ops::cuda
