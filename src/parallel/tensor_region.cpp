#include "parallel/tensor_region.h"

namespace megalith::parallel {

Tensor TensorRegion::gather(Stream& stream, Arena& arena, const Tensor& rows) const {
  if (!divides_tokens()) return rows;
  const Tensor all = arena.allocate("all tokens", rows.dtype, {rows.rows() * ranks(), rows.cols()});
  group->all_gather(stream, rows, all).wait(stream);
  return all;
}

TensorRegion::Started TensorRegion::start_reduce(Stream& stream, const Tensor& partial) const {
  if (!is_divided()) return {partial};
  if (!sequence_parallel) return {partial, group->all_reduce(stream, partial)};
  const int64_t rows = rows_of(partial.rows());
  const Tensor own = partial.slice_rows(rank() * rows, (rank() + 1) * rows);
  return {own, group->reduce_scatter(stream, partial, own)};
}

}  // namespace megalith::parallel
