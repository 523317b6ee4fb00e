#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "observe/json_scan.h"
#include "observe/run_events.h"

namespace megalith::observe {

// Megalith's clocks: `mono` of a boot never steps, so it gives the times between its lines; the wall clock at the
// boot's first line says where they lie. A later start on another machine whose clock is behind is moved behind the
// earlier one.
class BootClocks {
 public:
  struct Reading {
    std::string_view boot;
    int64_t wall = 0;       // microseconds since the epoch
    int64_t monotonic = 0;  // microseconds
    int64_t generation = 0;
  };
  // Microseconds since the epoch.
  int64_t align(const Reading& reading);

  int64_t steps() const { return steps_; }

 private:
  struct Boot {
    std::string id;
    int64_t offset = 0;       // of our time from its monotonic clock
    int64_t wall_offset = 0;  // of its wall clock as last seen
  };
  Boot& boot_of(const Reading& reading);

  std::vector<Boot> boots_;
  size_t last_ = 0;
  int64_t newest_ = 0;
  int64_t newest_generation_ = -1;
  int64_t steps_ = 0;
};

// Takes the lines of an event log one by one. Lines come in any order and more than once; damaged ones are counted.
// What it holds on to is small: of nodes that start or end together it keeps the first and the last.
class EventCollector {
 public:
  // An empty name: the job of the first line.
  explicit EventCollector(std::string job);

  void take(std::string_view line);
  RunEvents finish() &&;

 private:
  bool take_megalith();
  bool take_google();
  bool is_wanted(const JsonMember& job);
  bool keep(const RunEvent& event);
  uint32_t keep_reason(const JsonMember& reason);
  void sort_and_thin();

  RunEvents log_;
  std::vector<JsonMember> members_;
  std::string last_job_;  // as written in the last line, and where its lines are counted
  int64_t* last_count_ = nullptr;
  bool last_wanted_ = false;
  BootClocks clocks_;
  size_t limit_;
};

// Reads a log of any size line by line.
RunEvents read_run_events(const std::filesystem::path& file, const std::string& job = "");

}  // namespace megalith::observe
