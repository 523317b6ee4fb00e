#include <algorithm>
#include <limits>

#include "observe/draw/scale.h"
#include "observe/draw/svg/svg_canvas.h"
#include "plan/pictures.h"
#include "plan/step_timeline.h"

namespace megalith::plan {

namespace {

using observe::Rectangle;
using observe::SvgCanvas;
using parallel::Action;
using parallel::ActionKind;

constexpr double kLeft = 72, kRight = 20, kTop = 64, kBottom = 44;
constexpr double kRow = 30, kBox = 26;
constexpr double kUsualWidth = 1100, kWidestBox = 26, kNarrowestBox = 5;

// Later chunks are darker.
std::string colour_of(ActionKind kind, int64_t chunk, int64_t chunks) {
  const int hue = kind == ActionKind::forward ? 210 : kind == ActionKind::backward_weight ? 40 : 140;
  const int64_t lightness = chunks == 1 ? 72 : 82 - 26 * chunk / (chunks - 1);
  return fmt::format("hsl({},62%,{}%)", hue, lightness);
}

std::string_view name_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return "forward";
    case ActionKind::backward_input:
      return "backward, gradient of the input";
    case ActionKind::backward_weight:
      return "backward, gradients of the weights";
    default:
      return "backward";
  }
}

class ScheduleDrawing {
 public:
  explicit ScheduleDrawing(const engine::StageRequest& request)
      : request_(request),
        timeline_(timeline_of(request)),
        scale_(scale_of(timeline_)),
        canvas_(kLeft + timeline_.simulation.duration * scale_ + kRight,
                kTop + kRow * static_cast<double>(timeline_.schedules.size()) + kBottom) {}

  std::string draw() {
    canvas_.title({kLeft, 22}, fmt::format("{}: {} stages, {} micro batches; {:.1f} % idle",
                                           name_of_schedule(request_.layout), request_.layout.pipeline,
                                           request_.micro_batches, 100.0 * timeline_.simulation.bubble_fraction()));
    draw_legend();
    for (size_t stage = 0; stage < timeline_.schedules.size(); ++stage) draw_stage(stage);
    draw_axis();
    return canvas_.to_string();
  }

 private:
  // So that numbers can be read where there is room for them.
  static double scale_of(const StepTimeline& timeline) {
    double shortest = std::numeric_limits<double>::infinity();
    for (size_t stage = 0; stage < timeline.schedules.size(); ++stage) {
      for (const Span& span : timeline.simulation.stages[stage].spans) {
        if (span.end > span.start) shortest = std::min(shortest, span.end - span.start);
      }
    }
    return std::max(kNarrowestBox / shortest,
                    std::min(kWidestBox / shortest, kUsualWidth / timeline.simulation.duration));
  }

  void draw_legend() {
    const int64_t chunks = request_.layout.chunks;
    const bool splits_backward = request_.layout.schedule == parallel::PipelineSchedule::zero_bubble;
    double x = kLeft;
    const auto add = [&](ActionKind kind) {
      constexpr double kSwatch = 14;
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        canvas_.rectangle({x, 36, kSwatch, kSwatch}, colour_of(kind, chunk, chunks));
        x += kSwatch;
      }
      const std::string words = std::string(name_of(kind)) + (chunks > 1 ? ", first to last chunk" : "");
      canvas_.text({x + 6, 48}, words);
      x += 6 + SvgCanvas::width_of(words) + 16;
    };
    add(ActionKind::forward);
    add(splits_backward ? ActionKind::backward_input : ActionKind::backward);
    if (splits_backward) add(ActionKind::backward_weight);
  }

  void draw_stage(size_t stage) {
    const double y = kTop + kRow * static_cast<double>(stage);
    canvas_.text({kLeft - 8, y + kBox / 2 + 5}, fmt::format("stage {}", stage), SvgCanvas::Anchor::end);
    canvas_.rectangle({kLeft, y, timeline_.simulation.duration * scale_, kBox}, observe::kIdle, "idle");
    for (const Span& span : timeline_.simulation.stages[stage].spans) {
      const Action& action = timeline_.schedules[stage][span.action];
      if (!is_compute(action) || span.end == span.start) continue;
      constexpr double kGap = 0.6;
      const Rectangle box{kLeft + span.start * scale_ + kGap / 2, y, (span.end - span.start) * scale_ - kGap, kBox};
      canvas_.rectangle(box, colour_of(action.kind, action.chunk, request_.layout.chunks),
                        fmt::format("stage {}, {}: chunk {}, micro batch {}, {:g} to {:g}", stage, name_of(action.kind),
                                    action.chunk, action.micro_batch, span.start, span.end));
      canvas_.label(box, std::to_string(action.micro_batch));
    }
  }

  void draw_axis() {
    const double y = kTop + kRow * static_cast<double>(timeline_.schedules.size()) + 4;
    const double duration = timeline_.simulation.duration;
    canvas_.line({kLeft, y}, {kLeft + duration * scale_, y});
    for (const double tick : observe::nice_ticks(0.0, duration, 10)) {
      if (tick > duration) continue;
      canvas_.line({kLeft + tick * scale_, y}, {kLeft + tick * scale_, y + 5});
      canvas_.text({kLeft + tick * scale_, y + 19}, fmt::format("{:g}", tick), SvgCanvas::Anchor::middle);
    }
    canvas_.text({kLeft, y + 35}, "time, in forward passes of one layer");
  }

  const engine::StageRequest& request_;
  StepTimeline timeline_;
  double scale_;  // pixels of a unit of time
  SvgCanvas canvas_;
};

}  // namespace

std::string draw_schedule(const engine::StageRequest& request) {
  return ScheduleDrawing(request).draw();
}

}  // namespace megalith::plan
