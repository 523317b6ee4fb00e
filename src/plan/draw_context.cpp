#include "observe/draw/svg/svg_canvas.h"
#include "parallel/context_split.h"
#include "plan/pictures.h"

namespace megalith::plan {

namespace {

using observe::SvgCanvas;
using parallel::ContextSplit;
using parallel::Half;

constexpr double kLeft = 130, kTop = 100, kSide = 420, kLegend = 270;

std::string colour_of(int64_t rank, int64_t ranks) {
  return fmt::format("hsl({},58%,70%)", 210 + 360 * rank / ranks);
}

class ContextDrawing {
 public:
  explicit ContextDrawing(int64_t ranks)
      : ranks_(ranks),
        cell_(kSide / static_cast<double>(2 * ranks)),
        canvas_(kLeft + kSide + kLegend, kTop + kSide + 24) {}

  std::string draw() {
    canvas_.title({16, 24}, fmt::format("Attention over one sample that {} ranks share", ranks_));
    canvas_.text({kLeft, kTop - 34}, "keys and values, by block of positions");
    canvas_.text({16, kTop - 10}, "queries");
    for (int64_t rank = 0; rank < ranks_; ++rank) draw_rank(rank);
    return canvas_.to_string();
  }

 private:
  // Positions are counted in blocks.
  ContextSplit split_of(int64_t rank) const { return {.length = 2 * ranks_, .ranks = ranks_, .rank = rank}; }
  static int64_t block_of(const ContextSplit& split, Half half) { return positions_of(split, half).begin; }

  double across(int64_t block) const { return kLeft + static_cast<double>(block) * cell_; }
  double down(int64_t block) const { return kTop + static_cast<double>(block) * cell_; }

  void draw_rank(int64_t rank) {
    const ContextSplit queries = split_of(rank);
    int64_t half_pairs = 0;  // a pair on the diagonal is half of one
    for (const Half half : {Half::front, Half::back}) {
      const int64_t query = block_of(queries, half);
      draw_owner(rank, query);
      for (int64_t key = 0; key <= query; ++key) draw_pair(rank, query, key);
      half_pairs += 2 * query + 1;
    }
    const double y = kTop + 20 + 26 * static_cast<double>(rank);
    canvas_.rectangle({kLeft + kSide + 24, y - 12, 14, 14}, colour_of(rank, ranks_));
    canvas_.text({kLeft + kSide + 46, y},
                 fmt::format("rank {}: blocks {} and {}, {:g} pairs", rank, block_of(queries, Half::front),
                             block_of(queries, Half::back), static_cast<double>(half_pairs) / 2));
  }

  // At the edges: whose queries a row is, whose keys a column is.
  void draw_owner(int64_t rank, int64_t block) {
    constexpr double kThick = 14, kAway = 4;
    const std::string colour = colour_of(rank, ranks_);
    canvas_.rectangle({kLeft - kAway - kThick, down(block) + 1, kThick, cell_ - 2}, colour);
    canvas_.rectangle({across(block) + 1, kTop - kAway - kThick, cell_ - 2, kThick}, colour);
    canvas_.label({across(block), kTop - kAway - kThick, cell_, kThick}, std::to_string(block));
    canvas_.text({kLeft - kAway - kThick - 8, down(block) + cell_ / 2 + 4}, fmt::format("block {}", block),
                 SvgCanvas::Anchor::end);
  }

  void draw_pair(int64_t rank, int64_t query, int64_t key) {
    const double x = across(key) + 1;
    const double y = down(query) + 1;
    const double side = cell_ - 2;
    if (query == key) {
      canvas_.rectangle({x, y, side, side}, observe::kIdle);
      canvas_.polygon({{x, y}, {x, y + side}, {x + side, y + side}}, colour_of(rank, ranks_));
    } else {
      canvas_.rectangle({x, y, side, side}, colour_of(rank, ranks_));
    }
  }

  int64_t ranks_;
  double cell_;  // a pair of blocks
  SvgCanvas canvas_;
};

}  // namespace

std::string draw_context(int64_t ranks) {
  return ContextDrawing(ranks).draw();
}

}  // namespace megalith::plan
