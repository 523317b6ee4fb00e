#pragma once

#include <string>

#include "launch/launch.h"

namespace megalith::launch {

// The parts that batch scripts share. In all of them `launch` is the folder, `job` the cluster's id of this job, `log`
// and `journal` are the files of these names, and what the functions say goes to the log.

// launch=..., work=...
std::string script_settings(const Launch& launch);
// tracker=..., log=..., journal=... of a launch without stages.
std::string script_files(const Launch& launch);
// lock=..., patience=... for kWaitForRun; `run` is the run directory as the script sees it.
std::string script_patience(const Launch& launch, const std::string& run);
// export NAME=value
std::string script_exports(const Launch& launch);

// say, note, end.
extern const char* const kScriptFunctions;
extern const char* const kNewestCheckpoint;
// wait_for_run: for a process of an earlier start, on a node that was cut off, at most `patience` seconds; `lock` is
// the file that it holds.
extern const char* const kWaitForRun;
// Goes to the work directory, opens the log and ends where neither can be seen (2), or the launch has ended already;
// leaves in `generation` how many starts there were before.
extern const char* const kScriptStart;

}  // namespace megalith::launch
