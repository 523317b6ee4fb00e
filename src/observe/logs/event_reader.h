#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "observe/logs/boot_clocks.h"
#include "observe/logs/event_line.h"
#include "observe/logs/run_events.h"

namespace megalith::observe {

// Takes the lines of an event log one by one. Lines come in any order and more than once; damaged ones are counted.
// What it holds on to is small: of nodes that start or end together it keeps the first and the last.
class EventCollector {
 public:
  // An empty name: the job of the first line.
  explicit EventCollector(std::string job);

  void take(std::string_view line);
  // The same for a line of events.jsonl that somebody has parsed.
  void take(const EventLine& line);
  RunEvents finish() &&;

 private:
  bool take_google();
  void take_fact(const EventLine& line, int64_t micros);
  bool is_wanted(const JsonMember& job);
  void keep(const RunEvent& event);
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

// Reads a log of any size line by line; what supervisors wrote, too, where it is the events.jsonl of a run directory.
RunEvents read_run_events(const std::filesystem::path& file, const std::string& job = "");

// The journals of a run's supervisors, in order; none where it had none.
std::vector<std::filesystem::path> journals_of(const std::filesystem::path& run_directory);

}  // namespace megalith::observe
