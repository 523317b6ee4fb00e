#include "parallel/placement/cuts.h"

namespace megalith::parallel {

namespace {

int64_t columns_of(const ParameterSpec& spec) {
  return spec.shape.rank() == 1 ? 1 : spec.shape[1];
}

bool is_cut(const ParameterSpec& spec, int dimension) {
  return std::any_of(spec.cuts.begin(), spec.cuts.end(), [&](const Cut& cut) {
    return cut.dimension == dimension && std::find(cut.axes.begin(), cut.axes.end(), Axis::tp) != cut.axes.end();
  });
}

Interval part(int64_t size, int64_t parts, int64_t index) {
  const int64_t each = div_exact(size, parts);
  return {index * each, (index + 1) * each};
}

Piece whole(const ParameterSpec& spec, const TensorShare& share) {
  return {.box = {.rows = {0, spec.shape[0]}, .columns = {0, columns_of(spec)}},
          .replicas = share.ranks,
          .replica = share.rank,
          .gradient_is_partial = share.sequence_parallel && share.ranks > 1};
}

// The rank's part of one block of rows: some of its units, or one unit that several ranks hold.
Piece part_of_block(const Interval& block, int64_t unit, const TensorShare& share) {
  const int64_t units = div_exact(block.size(), unit);
  if (units >= share.ranks) return {.box = {.rows = shifted(part(block.size(), share.ranks, share.rank), block.begin)}};
  const int64_t replicas = div_exact(share.ranks, units);
  return {.box = {.rows = shifted(part(block.size(), units, share.rank / replicas), block.begin)},
          .replicas = replicas,
          .replica = share.rank % replicas,
          .gradient_is_partial = true};
}

std::vector<Piece> cut_rows(const ParameterSpec& spec, const TensorShare& share) {
  const std::vector<int64_t> blocks = spec.blocks.empty() ? std::vector<int64_t>{spec.shape[0]} : spec.blocks;
  std::vector<Piece> pieces;
  int64_t begin = 0;
  int64_t local_row = 0;
  for (const int64_t rows : blocks) {
    Piece piece = part_of_block({begin, begin + rows}, spec.cut_unit, share);
    piece.box.columns = {0, columns_of(spec)};
    piece.local_row = local_row;
    begin += rows;
    local_row += piece.box.rows.size();
    pieces.push_back(piece);
  }
  return pieces;
}

}  // namespace

std::vector<Piece> pieces_of(const ParameterSpec& spec, const TensorShare& share) {
  if (is_cut(spec, 0)) return cut_rows(spec, share);
  if (!is_cut(spec, 1)) return {whole(spec, share)};
  return {{.box = {.rows = {0, spec.shape[0]}, .columns = part(spec.shape[1], share.ranks, share.rank)}}};
}

std::vector<Piece> pieces_in_rows(const std::vector<Piece>& pieces, const Interval& local_rows) {
  std::vector<Piece> found;
  for (const Piece& piece : pieces) {
    const Interval common = intersection(piece.local_rows(), local_rows);
    if (common.empty()) continue;
    Piece narrowed = piece;
    narrowed.box.rows = shifted(common, piece.box.rows.begin - piece.local_row);
    narrowed.local_row = common.begin;
    found.push_back(narrowed);
  }
  return found;
}

}  // namespace megalith::parallel
