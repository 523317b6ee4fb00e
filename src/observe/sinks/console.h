#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "core/telemetry.h"
#include "observe/sinks/progress_line.h"

namespace megalith::observe {

struct ConsoleOptions {
  std::ostream* out = nullptr;  // outlives the sink
  bool terminal = false;        // a live line that is redrawn; otherwise plain lines
  std::function<int()> width;   // columns of the terminal; none: 80
  int64_t max_steps = 0;
  int64_t first_step = 0;         // steps done before this process began
  bool loads_checkpoint = false;  // before the first step; else weights are made
  int64_t log_every_n_steps = 1;
  std::function<double()> clock;  // seconds; none: the monotonic clock
  double tick_seconds = 0.0;      // the live line is drawn again though nothing was told; 0: never
};

// Progress for people (progress_line.h), from the start of the run on. On a terminal one line, redrawn at most ten
// times a second; elsewhere a line every log_every_n_steps, per validation, and for what is done before the first step.
class ConsoleSink : public Sink {
 public:
  explicit ConsoleSink(ConsoleOptions options);
  ~ConsoleSink() override;

  void on_event(const Event& event) override;
  void on_metrics(const Metrics& metrics) override;

  // Writes `text` (with its line end) above the live line. Any thread.
  void print_above(std::string_view text);
  bool on_terminal() const { return options_.terminal; }
  // Ends the live line.
  void finish();

 private:
  Progress progress() const;
  void set_phase(std::string phase);
  void redraw(bool now);
  void draw_live();
  void tick(const std::stop_token& stop);

  ConsoleOptions options_;
  double begin_;
  double steps_begin_;  // when all was ready for them
  std::mutex mutex_;
  Progress progress_;  // but for its times
  double last_drawn_ = -std::numeric_limits<double>::infinity();
  bool live_ = false;  // the cursor stands behind a line without an end
  std::condition_variable_any wake_;
  std::jthread ticker_;  // last: it uses all of the above
};

// The log's console lines go above the sink's live line for as long as the sink lives. Does nothing off a terminal.
void print_log_above(const std::shared_ptr<ConsoleSink>& sink);

// Columns of the terminal behind a descriptor; 80 where it cannot tell.
int terminal_width(int descriptor);

}  // namespace megalith::observe
