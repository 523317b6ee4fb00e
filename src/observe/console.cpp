#include "observe/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstdio>
#include <ostream>

#include "core/clock.h"
#include "observe/log_files.h"
#include "observe/python_json.h"

namespace megalith::observe {

namespace {
constexpr double kRedrawSeconds = 0.1;
constexpr int kBarCells = 10;
constexpr int kPadding = 5;
// Shown in this order whatever order they arrive in.
constexpr const char* kShown[] = {"reduced_train_loss", "global_step", "consumed_samples", "train_step_timing in s",
                                  "val_loss"};

// tqdm's bar: whole cells, then one in eighths.
std::string bar(double fraction) {
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * kBarCells * 8);
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) text += "█";
  text += kEighths[eighths % 8];
  const int filled = eighths / 8 + (eighths % 8 != 0 ? 1 : 0);
  return text + std::string(static_cast<size_t>(kBarCells - filled), ' ');
}
}  // namespace

std::string console_number(double number) {
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

std::string_view truncate_utf8(std::string_view text, int64_t columns) {
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts_character = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (starts_character && columns-- <= 0) return text.substr(0, i);
  }
  return text;
}

int terminal_width(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

ConsoleSink::ConsoleSink(ConsoleOptions options) : options_(std::move(options)), done_(options_.first_step) {
  if (!options_.clock) options_.clock = monotonic_seconds;
  if (!options_.width) options_.width = [] { return 80; };
  begin_ = options_.clock();
}

ConsoleSink::~ConsoleSink() {
  finish();
}

void ConsoleSink::on_metrics(const Metrics& metrics) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, value] : metrics.values) {
    const std::optional<double> number = number_of(value);
    if (!number) continue;
    if (name == "epoch") epoch_ = static_cast<int64_t>(*number);
    const auto known =
        std::find_if(shown_.begin(), shown_.end(), [n = &name](const auto& pair) { return pair.first == *n; });
    if (known != shown_.end()) {
      known->second = *number;
    } else {
      shown_.emplace_back(name, *number);
    }
  }
  const bool validation = metrics.kind == "validation";
  if (!validation) done_ = metrics.step + 1;
  const bool last = done_ >= options_.max_steps;
  const int64_t interval = std::max<int64_t>(1, options_.log_every_n_steps);
  if (options_.terminal) {
    redraw(validation || last);
  } else if (validation || last || done_ % interval == 0) {
    *options_.out << line() << '\n' << std::flush;
  }
}

std::string ConsoleSink::line() const {
  const auto total = static_cast<double>(std::max<int64_t>(1, options_.max_steps));
  const double fraction = static_cast<double>(done_) / total;
  const double elapsed = options_.clock() - begin_;
  const int64_t here = done_ - options_.first_step;
  const std::string remaining =
      here > 0 ? format_duration(elapsed / static_cast<double>(here) * static_cast<double>(options_.max_steps - done_))
               : "?";
  std::string text = fmt::format("Epoch {}: {:3.0f}%|{}| {}/{} [{}<{}", epoch_, fraction * 100.0, bar(fraction), done_,
                                 options_.max_steps, format_duration(elapsed), remaining);
  for (const char* name : kShown) {
    for (const auto& [known, number] : shown_) {
      if (known == name) text += fmt::format(", {}={}", name, console_number(number));
    }
  }
  return text + "]";
}

void ConsoleSink::redraw(bool now) {
  const double time = options_.clock();
  if (!now && time - last_drawn_ < kRedrawSeconds) return;
  last_drawn_ = time;
  draw_live();
}

void ConsoleSink::draw_live() {
  // One column stays free: some terminals wrap when the last one is filled.
  const std::string text = line();
  *options_.out << '\r' << truncate_utf8(text, std::max(1, options_.width() - 1)) << "\x1b[K" << std::flush;
  live_ = true;
}

void ConsoleSink::print_above(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (live_) *options_.out << "\r\x1b[K";
  *options_.out << text << std::flush;
  if (live_) draw_live();
}

void ConsoleSink::finish() {
  const std::lock_guard lock(mutex_);
  if (!live_) return;
  draw_live();
  *options_.out << '\n' << std::flush;
  live_ = false;
}

void print_log_above(const std::shared_ptr<ConsoleSink>& sink) {
  if (!sink->on_terminal()) return;
  set_log_console([weak = std::weak_ptr(sink)](std::string_view line) {
    if (const auto alive = weak.lock()) {
      alive->print_above(line);
    } else {
      std::fwrite(line.data(), 1, line.size(), stderr);
    }
  });
}

}  // namespace megalith::observe
