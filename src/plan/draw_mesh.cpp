#include <algorithm>

#include "observe/draw/svg/svg_canvas.h"
#include "parallel/mesh.h"
#include "plan/pictures.h"

namespace megalith::plan {

namespace {

using observe::Rectangle;
using observe::SvgCanvas;
using parallel::Axis;
using parallel::Layout;
using parallel::Mesh;

constexpr double kLeft = 150, kTop = 90, kUsualWidth = 1100;
constexpr double kCellWidth = 34, kCellHeight = 22, kGap = 2;
constexpr double kBetween = 18, kHeading = 22;  // of stages

struct Group {
  std::string name;
  std::string colour;
  std::vector<int> ranks;
};

// A rank of several has the colour of the first.
std::vector<Group> groups_of(const Mesh& mesh, int rank) {
  std::vector<Group> groups = {{fmt::format("rank {}", rank), "hsl(0,70%,68%)", {rank}}};
  const auto add = [&](const char* name, int hue, std::vector<int> ranks) {
    if (ranks.size() > 1) groups.push_back({name, fmt::format("hsl({},62%,70%)", hue), std::move(ranks)});
  };
  add("tensor: divide its matrices", 210, mesh.group_of(rank, {Axis::tp}));
  add("context: divide its samples", 40, mesh.group_of(rank, {Axis::cp}));
  add("same weights, other samples", 140, mesh.group_of(rank, {Axis::cp, Axis::dp}));
  add("pipeline: other layers", 290, mesh.group_of(rank, {Axis::pp}));
  return groups;
}

class MeshDrawing {
 public:
  MeshDrawing(const Layout& layout, int rank)
      : layout_(layout),
        mesh_(layout),
        groups_(groups_of(mesh_, rank)),
        stage_width_(static_cast<double>(layout.tensor) * kCellWidth),
        stage_height_(static_cast<double>(layout.replicas()) * kCellHeight),
        per_line_(std::clamp(static_cast<int64_t>((kUsualWidth - kLeft) / (stage_width_ + kBetween)), int64_t{1},
                             layout.pipeline)),
        canvas_(
            std::max(kLeft + static_cast<double>(per_line_) * (stage_width_ + kBetween), kLegendWidth),
            kTop + static_cast<double>(ceil_div(layout.pipeline, per_line_)) * (stage_height_ + kHeading + kBetween)) {}

  std::string draw() {
    canvas_.title({16, 24}, fmt::format("{} ranks: {}", layout_.world(), to_string(layout_)));
    draw_legend();
    for (int64_t stage = 0; stage < layout_.pipeline; ++stage) draw_stage(stage);
    return canvas_.to_string();
  }

 private:
  static constexpr double kLegendWidth = 980;

  void draw_legend() {
    double x = 16;
    for (const Group& group : groups_) {
      canvas_.rectangle({x, 40, 14, 14}, group.colour);
      canvas_.text({x + 20, 52}, group.name);
      x += 20 + SvgCanvas::width_of(group.name) + 14;
    }
  }

  double line_of(int64_t stage) const {
    const int64_t line = stage / per_line_;
    return kTop + static_cast<double>(line) * (stage_height_ + kHeading + kBetween);
  }

  void draw_stage(int64_t stage) {
    const double x = kLeft + static_cast<double>(stage % per_line_) * (stage_width_ + kBetween);
    const double y = line_of(stage);
    canvas_.text({x, y}, fmt::format("stage {}", stage));
    for (int64_t data = 0; data < layout_.data; ++data) {
      for (int64_t context = 0; context < layout_.context; ++context) {
        const double row = y + 8 + static_cast<double>(data * layout_.context + context) * kCellHeight;
        if (stage % per_line_ == 0) name_row(row, data, context);
        for (int64_t tensor = 0; tensor < layout_.tensor; ++tensor) {
          draw_rank({.tp = tensor, .cp = context, .dp = data, .pp = stage},
                    {x + static_cast<double>(tensor) * kCellWidth, row, kCellWidth - kGap, kCellHeight - kGap});
        }
      }
    }
  }

  void name_row(double y, int64_t data, int64_t context) {
    const std::string name =
        layout_.context > 1 ? fmt::format("data {}, context {}", data, context) : fmt::format("data {}", data);
    canvas_.text({kLeft - 12, y + kCellHeight / 2 + 4}, name, SvgCanvas::Anchor::end);
  }

  void draw_rank(const parallel::Coordinates& place, const Rectangle& box) {
    const int rank = mesh_.rank_of(place);
    const auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& one) {
      return std::find(one.ranks.begin(), one.ranks.end(), rank) != one.ranks.end();
    });
    canvas_.rectangle(
        box, group != groups_.end() ? group->colour : "hsl(215,14%,80%)",
        fmt::format("rank {}: tensor {}, context {}, data {}, stage {}", rank, place.tp, place.cp, place.dp, place.pp));
    canvas_.label(box, std::to_string(rank));
  }

  const Layout& layout_;
  Mesh mesh_;
  std::vector<Group> groups_;
  double stage_width_;
  double stage_height_;
  int64_t per_line_;  // stages
  SvgCanvas canvas_;
};

}  // namespace

std::string draw_mesh(const Layout& layout, int rank) {
  return MeshDrawing(layout, rank).draw();
}

}  // namespace megalith::plan
