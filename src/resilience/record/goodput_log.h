#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "observe/logs/boot_clocks.h"
#include "observe/logs/event_line.h"
#include "observe/logs/line_tail.h"

namespace megalith::resilience {

// The event log of Google's resiliency library (resilience.goodput_log), from which its calculator and `megalith report
// goodput` tell how much of a job's time made progress: a JSON object a line. Made of what the run has written down
// itself, events.jsonl and the supervisors' journals, so that both give the same numbers. A job is a run, by its id.
class GoodputLog {
 public:
  // Goes on with a file that is there: a supervisor that takes over, and a run that goes on, tell nothing twice. User
  // error where it cannot be written.
  GoodputLog(const std::filesystem::path& path, std::filesystem::path run_directory, std::string job);

  // Adds what has happened since the last call.
  void follow();

 private:
  void begin();
  void take(std::string_view line);
  void take_fact(const observe::EventLine& line);
  int64_t nodes_of(int64_t generation);
  void add(std::string_view event, const std::string& more, int64_t micros);

  std::filesystem::path path_;
  std::filesystem::path run_directory_;
  std::string job_;
  File file_;
  std::map<std::filesystem::path, observe::LineTail> tails_;
  std::map<std::string, int64_t, std::less<>> known_;  // lines of each kind that are there and not yet met again
  observe::BootClocks clocks_;
  std::vector<observe::JsonMember> scratch_;
  int64_t generation_ = -1;  // whose number of nodes is known
  int64_t nodes_ = 1;
};

}  // namespace megalith::resilience
