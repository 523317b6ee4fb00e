#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/environment/environment.h"
#include "core/file.h"
#include "launch/launch.h"

namespace megalith::launch {

// A line of the journal, which the job itself writes:
//   2026-11-18T12:00:00+0000 start 0 4711 n[1-2]
//   2026-11-18T13:00:00+0000 end 0 4711 75 stopped early
struct JournalLine {
  std::string time;
  bool starts = false;     // else it ends
  int64_t generation = 0;  // counts the starts
  std::string job;
  int64_t code = 0;    // exit code of an end
  std::string detail;  // the nodes of a start, the reason of an end
};

// A launch as its folder remembers it. RUN/launch/NAME holds launch.json (this), profile.yaml (as resolved), what was
// submitted, the recipes, the secret, the journal, the log; earlier launches of the name are in `before`.
struct LaunchRecord {
  std::string name;
  std::string kind;                  // of the profile
  std::string cluster;               // the profile's name
  std::vector<std::string> command;  // verb and arguments
  int64_t nodes = 1;
  int64_t ranks_per_node = 1;
  int64_t number = 1;
  std::vector<std::string> ids;
  std::filesystem::path run_directory;
  bool is_shared = true;  // the job sees the folder, and writes the journal
  struct Stage {
    std::string name;
    int64_t tasks = 1;
  };
  std::vector<Stage> stages{};  // in the order of `ids`; none: the launch is one job after another

  std::filesystem::path folder{};  // where it was read from

  std::filesystem::path file(const char* inside) const { return folder / inside; }
  // Why it has ended, with the exit code; nothing where it has not.
  struct Ending {
    int64_t code = 0;
    std::string reason;
  };
  std::optional<Ending> ending() const;
  bool stop_asked() const { return std::filesystem::exists(file(kStopName)); }
  int64_t tasks_done(const std::string& stage) const;
  std::vector<JournalLine> journal() const;
  // Where the job does not write the journal: adds those of these lines, with `generation` counted, that it lacks.
  void note(const std::vector<JournalLine>& lines) const;
};

// Keeps others from launching into this folder as long as the file lives: from before it is asked whether the last
// launch still runs until the ids of this one are written down. User error where another process is at it, or has been
// since this launch was planned.
File claim_folder(const Launch& launch);
// Fills the folder of a launch, with everything but the ids: an earlier launch of this name moves to `before`.
LaunchRecord begin_folder(const Launch& launch, const std::string& rendered_name, const std::string& rendered);
// Writes the ids down, and where the folder is for find_launch().
void finish_folder(LaunchRecord& record, const std::vector<std::string>& ids,
                   const config::Lookup& environment = config::process_environment);

LaunchRecord read_record(const std::filesystem::path& folder);
// How many launches of a name this folder has seen, the present one included.
int64_t launches_in(const std::filesystem::path& folder);

// The folder of a launch: by its name, among those that this user launched and those of runs/ here, or a run directory
// or the folder itself by its path. User error where there is none, or more than one.
LaunchRecord find_launch(const std::string& name, const config::Lookup& environment = config::process_environment);
// All that can be found, by name.
std::vector<LaunchRecord> all_launches(const config::Lookup& environment = config::process_environment);
// The folder, and the name with it; the run itself stays.
void remove_launch(const LaunchRecord& record, const config::Lookup& environment = config::process_environment);

}  // namespace megalith::launch
