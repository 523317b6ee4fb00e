#include "observe/sinks/console.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ostream>

#include "core/clock.h"
#include "core/event_names.h"
#include "core/metric_names.h"
#include "observe/sinks/log_files.h"

namespace megalith::observe {

namespace {
constexpr double kRedrawSeconds = 0.1;

// What spans that hold up the steps are called while they last.
std::string words_for_span(std::string_view name) {
  if (name == event::kValidation) return "validating";
  return name == event::kCheckpointSave ? "saving" : "";
}
}  // namespace

int terminal_width(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

ConsoleSink::ConsoleSink(ConsoleOptions options)
    : options_(std::move(options)), progress_{.done = options_.first_step, .max_steps = options_.max_steps} {
  if (!options_.clock) options_.clock = monotonic_seconds;
  if (!options_.width) options_.width = [] { return 80; };
  begin_ = steps_begin_ = options_.clock();
  if (options_.terminal && options_.tick_seconds > 0.0)
    ticker_ = std::jthread([this](const std::stop_token& stop) { tick(stop); });
}

ConsoleSink::~ConsoleSink() {
  finish();
}

void ConsoleSink::tick(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    wake_.wait_for(lock, stop, std::chrono::duration<double>(options_.tick_seconds), [] { return false; });
    if (live_ && !stop.stop_requested()) redraw(false);
  }
}

void ConsoleSink::on_event(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (event.name == event::kJobStarted)
    set_phase(options_.loads_checkpoint ? "loading the checkpoint" : "making the weights");
  if (event.name == event::kCheckpointLoaded) set_phase("preparing the first step");
  if (event.phase == Phase::instant || words_for_span(event.name).empty()) return;
  progress_.phase = event.phase == Phase::begin ? words_for_span(event.name) : "";
  if (live_) redraw(true);
}

void ConsoleSink::set_phase(std::string phase) {
  progress_.phase = std::move(phase);
  steps_begin_ = options_.clock();
  if (options_.terminal) {
    redraw(true);
  } else {
    *options_.out << progress_line(progress()) << '\n' << std::flush;
  }
}

void ConsoleSink::on_metrics(const Metrics& metrics) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, value] : metrics.values) {
    const std::optional<double> number = number_of(value);
    if (!number) continue;
    if (name == metric::kEpoch) progress_.epoch = static_cast<int64_t>(*number);
    auto& numbers = progress_.numbers;
    const auto known =
        std::find_if(numbers.begin(), numbers.end(), [n = &name](const auto& pair) { return pair.first == *n; });
    if (known != numbers.end()) {
      known->second = *number;
    } else {
      numbers.emplace_back(name, *number);
    }
  }
  const bool validation = metrics.kind == metric::kValidation;
  if (!validation) progress_.done = metrics.step + 1;
  progress_.phase.clear();
  const bool last = progress_.done >= options_.max_steps;
  const int64_t interval = std::max<int64_t>(1, options_.log_every_n_steps);
  if (options_.terminal) {
    redraw(validation || last);
  } else if (validation || last || progress_.done % interval == 0) {
    *options_.out << progress_line(progress()) << '\n' << std::flush;
  }
}

Progress ConsoleSink::progress() const {
  Progress progress = progress_;
  const double now = options_.clock();
  progress.elapsed = now - begin_;
  const int64_t here = progress.done - options_.first_step;
  if (here > 0)
    progress.remaining =
        (now - steps_begin_) / static_cast<double>(here) * static_cast<double>(options_.max_steps - progress.done);
  return progress;
}

void ConsoleSink::redraw(bool now) {
  const double time = options_.clock();
  if (!now && time - last_drawn_ < kRedrawSeconds) return;
  last_drawn_ = time;
  draw_live();
}

void ConsoleSink::draw_live() {
  // One column stays free: some terminals wrap when the last one is filled.
  *options_.out << '\r' << progress_line(progress(), std::max(1, options_.width() - 1)) << "\x1b[K" << std::flush;
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
