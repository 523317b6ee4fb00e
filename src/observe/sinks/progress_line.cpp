#include "observe/sinks/progress_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/metric_names.h"
#include "core/words.h"
#include "observe/draw/scale.h"
#include "observe/draw/styled_line.h"
#include "observe/sinks/python_json.h"

namespace megalith::observe {

namespace {
constexpr int64_t kBarCells = 10;

double fraction_of(const Progress& progress) {
  return static_cast<double>(progress.done) / static_cast<double>(std::max<int64_t>(1, progress.max_steps));
}

std::string percent_of(const Progress& progress) {
  return fmt::format("{:3.0f}%", 100.0 * fraction_of(progress));
}

std::string bar_of(const Progress& progress, int64_t cells) {
  return fmt::format("|{}|", progress_bar(fraction_of(progress), cells, " "));
}

std::string times_of(const Progress& progress) {
  return fmt::format("{}<{}", format_duration(progress.elapsed),
                     progress.remaining ? format_duration(*progress.remaining) : "?");
}

// A part of the line that is left out where others need its room.
struct Piece {
  std::string text;
  int importance = 0;   // 0: the most
  std::string shorter;  // said instead where that has room; empty: nothing
  bool shown = false;
};

struct ShortLine {
  std::vector<Piece> pieces;  // the first `kHead` as they are, the others in brackets

  std::string text() const {
    std::string head;
    std::string details;
    for (const Piece& piece : pieces) {
      if (!piece.shown) continue;
      const bool is_detail = &piece - pieces.data() >= kHead;
      if (is_detail) details += (details.empty() ? " [" : ", ") + piece.text;
      if (!is_detail) head += piece.text;
    }
    return head + (details.empty() ? "" : details + "]");
  }

  void fit(int64_t columns) {
    std::vector<Piece*> by_importance;
    for (Piece& piece : pieces) {
      if (!piece.text.empty()) by_importance.push_back(&piece);
    }
    std::stable_sort(by_importance.begin(), by_importance.end(),
                     [](const Piece* a, const Piece* b) { return a->importance < b->importance; });
    for (Piece* piece : by_importance) {
      piece->shown = true;
      if (columns_of(text()) <= columns) continue;
      std::swap(piece->text, piece->shorter);
      piece->shown = !piece->text.empty() && (piece == by_importance.front() || columns_of(text()) <= columns);
    }
  }

  static constexpr std::ptrdiff_t kHead = 4;  // epoch, percentage, bar, counts
};

ShortLine short_line_of(const Progress& progress) {
  const auto shown = [&](const char* name, const char* format, double unit = 1.0) {
    const auto number = progress.number(name);
    return number ? fmt::format(fmt::runtime(format), *number * unit) : "";
  };
  const auto speed = progress.number(metric::kTokensPerSecond);
  return {{{fmt::format("Epoch {}: ", progress.epoch), 8},
           {percent_of(progress), 0, percent_of(progress)},
           {bar_of(progress, kBarCells), 6, bar_of(progress, kBarCells / 2)},
           {fmt::format(" {}/{}", progress.done, progress.max_steps), 2},
           {times_of(progress), 5},
           {shown(metric::kTrainLoss, "loss={:.4f}"), 1},
           {speed ? with_commas(*speed) + " tokens/s" : "", 3, speed ? short_number(*speed) + " tok/s" : ""},
           {shown(metric::kMfu, "MFU={:.1f}%", 100.0), 4},
           {progress.phase, 1},
           {shown(metric::kValidationLoss, "val_loss={:.4f}"), 7},
           {shown(metric::kMeanStepTime, "step={:.3g}s"), 9},
           {shown(metric::kConsumedSamples, "samples={:.0f}"), 10}}};
}
}  // namespace

std::optional<double> Progress::number(std::string_view name) const {
  for (const auto& [known, number] : numbers) {
    if (known == name) return number;
  }
  return std::nullopt;
}

std::string progress_bar(double fraction, int64_t cells, std::string_view empty) {
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<int64_t>(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(cells * 8));
  std::string text;
  for (int64_t i = 0; i < eighths / 8; ++i) text += "█";
  text += kEighths[eighths % 8];
  for (int64_t i = columns_of(text); i < cells; ++i) text += empty;
  return text;
}

std::string console_number(double number) {
  constexpr size_t kPadding = 5;
  // tqdm takes "%.3g" where it is shorter than repr(); Lightning pads floats to five characters.
  std::string three = fmt::format("{:.3g}", number);
  for (const auto& [wide, narrow] : {std::pair("e+0", "e+"), std::pair("e-0", "e-")}) {
    if (const size_t at = three.find(wide); at != std::string::npos) three.replace(at, 3, narrow);
  }
  const std::string full = python_repr(number);
  std::string text = three.size() < full.size() ? three : full;
  if (text.find_first_of("ein") != std::string::npos) return text;
  if (text.find('.') == std::string::npos && text.size() < kPadding) text += '.';
  if (text.find('.') != std::string::npos && text.size() < kPadding) text.append(kPadding - text.size(), '0');
  return text;
}

std::string progress_line(const Progress& progress) {
  std::string text = fmt::format("Epoch {}: {}{} {}/{} [{}", progress.epoch, percent_of(progress),
                                 bar_of(progress, kBarCells), progress.done, progress.max_steps, times_of(progress));
  for (const char* name : {metric::kTrainLoss, metric::kGlobalStep, metric::kConsumedSamples, metric::kMeanStepTime,
                           metric::kValidationLoss}) {
    if (const auto number = progress.number(name)) text += fmt::format(", {}={}", name, console_number(*number));
  }
  if (const auto speed = progress.number(metric::kTokensPerSecond)) text += fmt::format(", tokens/s={:.0f}", *speed);
  if (const auto mfu = progress.number(metric::kMfu)) text += fmt::format(", MFU={:.1f}%", 100.0 * *mfu);
  if (!progress.phase.empty()) text += ", " + progress.phase;
  return text + "]";
}

std::string progress_line(const Progress& progress, int64_t columns) {
  std::string text = progress_line(progress);
  if (columns_of(text) <= columns) return text;
  ShortLine line = short_line_of(progress);
  line.fit(columns);
  text = line.text();
  return std::string(truncate_utf8(text, columns));
}

}  // namespace megalith::observe
