#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace megalith::observe {

// What happened to a job, in few bytes each, since a long run has millions: the common ground of Megalith's
// events.jsonl and of the event log of Google's resiliency library. The order of the kinds breaks ties of time.
enum class RunEventKind : uint8_t {
  scheduled,   // by the user
  started,     // one node's part of the job
  load,        // a span
  loaded,      // `step`: how many steps are done
  train_step,  // a span; `step`: how many were done before it
  validation,  // a span
  save,        // a span
  saved,       // `step`: how many steps are done
  stopped,     // by the user
  terminated,  // one node's part of the job
};

struct RunEvent {
  int64_t micros = 0;  // since the epoch: when it happened, or when the span ended; of an open one, when it began
  int64_t step = -1;
  float seconds = 0.0F;    // how long the span took
  float data_wait = 0.0F;  // of a step
  uint32_t reason = 0;     // of a termination: into RunEvents::reasons
  RunEventKind kind = RunEventKind::started;
  bool open = false;     // a span that has not ended
  bool planned = false;  // of a termination: it was asked for, or the work was done

  bool operator==(const RunEvent&) const = default;
};

// What a supervisor did about a fault, as its journal tells; microseconds since the epoch, -1: it did not.
struct Recovery {
  int64_t noticed = -1;
  int64_t decided = -1;  // what belongs to the fault is known, and what to do
  int64_t stopped = -1;  // no process of the ranks is left
  int64_t checked = -1;  // the nodes were
  int64_t placed = -1;   // the next generation has its nodes
  uint32_t reason = 0;   // into RunEvents::reasons
};

enum class EventFormat { none, megalith, google };

// One job's events, sorted by time; what was found beside them.
struct RunEvents {
  EventFormat format = EventFormat::none;
  std::string job;  // job_name, or Megalith's run id
  std::vector<RunEvent> events;
  std::vector<Recovery> recoveries;  // in the order of time
  std::vector<std::string> reasons{""};
  bool steps_are_floats = false;  // as Cloud Logging hands them out: 40.0

  int64_t lines = 0;
  int64_t bad_lines = 0;                // torn, damaged, or of another kind
  int64_t duplicate_lines = 0;          // not among `events`
  int64_t clock_steps = 0;              // times that a clock was found to have been set, and corrected for
  std::map<std::string, int64_t> jobs;  // lines of each job in the file; the first hundred
};

}  // namespace megalith::observe
