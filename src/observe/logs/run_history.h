#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/draw/curve.h"

namespace megalith::observe {

struct SpanTotal {
  int64_t ended = 0;
  int64_t open = 0;  // begun and never ended: the process was killed inside
  double seconds = 0.0;
};

// One process of the run.
struct RunStart {
  double time = 0.0;  // seconds since the epoch
  int64_t step = 0;   // how many steps were done before
};

struct RunEnd {
  double time = 0.0;
  std::string reason;  // empty: the work was done
};

// What a run's directory tells about it.
struct RunHistory {
  std::string run_id;
  std::vector<std::string> nodes;
  std::string program;      // version and commit of the last start; empty: it did not say
  std::string processor;    // of rank 0's machine
  std::string accelerator;  // of rank 0; empty: none, or it did not say
  double first_time = 0.0;  // seconds since the epoch; 0: unknown
  double last_time = 0.0;
  std::vector<RunStart> starts;
  std::optional<RunEnd> end;  // of the last process; none: it still runs, or was killed

  std::map<std::string, Curve, std::less<>> curves;  // numbers of training steps by the names they are logged under
  Curve validation_loss;
  Curve time_of_step;                        // seconds since the epoch
  std::map<std::string, double> memory;      // bytes by arena, as last told
  std::map<int64_t, int64_t> slowest_ranks;  // in how many steps a rank was the slowest
  std::map<std::string, SpanTotal> spans;    // by event name
  std::optional<int64_t> last_step;          // the newest training step, 0-based
  std::optional<int64_t> saved_steps;        // that the newest checkpoint has behind it
  double consumed_samples = 0.0;
  int64_t skipped_steps = 0;  // whose gradients were not finite

  std::string config;                           // YAML, or the parameters of dllogger.json
  std::map<std::string, std::string> settings;  // the same, flat: "model.optim.lr" -> "0.001"
  int64_t unreadable_lines = 0;

  // Empty where the run did not log it.
  const Curve& curve(std::string_view name) const;
  // A setting as a number; none where it is missing or no number.
  std::optional<double> setting(const std::string& key) const;
  std::optional<int64_t> max_steps() const;
  std::optional<double> tokens_per_step() const;
  // The loss of the newest step.
  std::optional<double> loss() const;
  bool complete() const;
  // Whether it learned from made-up tokens, for want of data.
  bool made_up_tokens() const;
};

struct EventLine;
// Called with each line of events.jsonl that can be read.
using UseEvent = std::function<void(const EventLine&)>;

// Reads dllogger/rank-0/dllogger.json (or dllogger.json), events.jsonl and hparams.yaml, as far as they exist, line by
// line: lines that are torn or damaged are counted and passed over. What events.jsonl holds counts more.
RunHistory read_run_history(const std::filesystem::path& run_directory, UseEvent use_event = {});

// Whether there is something at a path; a user error where that cannot be seen, or is a file that cannot be read.
bool is_there(const std::filesystem::path& path);

// A user error that says what the directory does hold, unless it holds a run's logs.
void check_holds_run(const std::filesystem::path& run_directory);

// A run may yet begin there: the directory is missing or empty, or a run has it and has not written its logs.
bool awaits_run(const std::filesystem::path& run_directory);

}  // namespace megalith::observe
