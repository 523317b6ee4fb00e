#pragma once

#include "ops/cases/op_case.h"
#include "ops/vocabulary/row_order.h"

namespace megalith::ops::testing {

// `given` rows by their keys, as a GPU needs them where it adds up rows.
class OrderedRows {
 public:
  OrderedRows(Stream& stream, const Buffer& given, int64_t rows, int64_t limit)
      : keys_(DType::i32, 1, rows),
        rows_(DType::i32, 1, rows),
        scratch_(DType::i32, 1, row_order_scratch(stream.device(), rows)) {
    order_rows(stream, {.given = given.vector(), .limit = limit, .order = order(), .scratch = scratch_.vector()});
  }
  RowOrder order() const { return {.keys = keys_.vector(), .rows = rows_.vector()}; }
  Named values() const { return {{"keys", keys_.values()}, {"rows", rows_.values()}}; }

 private:
  Buffer keys_, rows_, scratch_;
};

}  // namespace megalith::ops::testing
