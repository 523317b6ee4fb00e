#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/telemetry.h"

namespace megalith::observe {

struct ConsoleOptions {
  std::ostream* out = nullptr;  // outlives the sink
  bool terminal = false;        // a live line that is redrawn; otherwise plain lines
  std::function<int()> width;   // columns of the terminal; none: 80
  int64_t max_steps = 0;
  int64_t first_step = 0;  // steps done before this process began
  int64_t log_every_n_steps = 1;
  std::function<double()> clock;  // seconds; none: the monotonic clock
};

// Progress for people, in the words of NeMo and tqdm:
//   Epoch 0:  10%|█         | 5/50 [00:12<01:50, reduced_train_loss=6.130, global_step=4.000, ..., val_loss=6.250]
// On a terminal one line, redrawn at most ten times a second; elsewhere a line every log_every_n_steps and per
// validation.
class ConsoleSink : public Sink {
 public:
  explicit ConsoleSink(ConsoleOptions options);
  ~ConsoleSink() override;

  void on_event(const Event&) override {}
  void on_metrics(const Metrics& metrics) override;

  // Writes `text` (with its line end) above the live line. Any thread.
  void print_above(std::string_view text);
  bool on_terminal() const { return options_.terminal; }
  // Ends the live line.
  void finish();

 private:
  std::string line() const;
  void redraw(bool now);
  void draw_live();

  ConsoleOptions options_;
  double begin_;
  std::mutex mutex_;
  int64_t done_;
  int64_t epoch_ = 0;
  std::vector<std::pair<std::string, double>> shown_;  // the latest of each number
  double last_drawn_ = -std::numeric_limits<double>::infinity();
  bool live_ = false;  // the cursor stands behind a line without an end
};

// The log's console lines go above the sink's live line for as long as the sink lives. Does nothing off a terminal.
void print_log_above(const std::shared_ptr<ConsoleSink>& sink);

// Columns of the terminal behind a descriptor; 80 where it cannot tell.
int terminal_width(int descriptor);

// As Lightning shows numbers beside tqdm's bar: 6.1302 is "6.130", 1280.0 is "1280.0".
std::string console_number(double number);

// The first `columns` characters of UTF-8 text, none of them broken.
std::string_view truncate_utf8(std::string_view text, int64_t columns);

}  // namespace megalith::observe
