#include "launch/job_script.h"

#include <fmt/format.h>

#include "launch/bash_quote.h"
#include "train/run/run_files.h"

namespace megalith::launch {

namespace {

// They would make each node a run of its own, or stand beside this launch's secret.
const char* const kForget = R"sh(# What the shell that submitted this may hold for other launchers.
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE JOB_COMPLETION_INDEX NNODES NPROC MEGALITH_STORE_SECRET
)sh";

}  // namespace

std::string script_settings(const Launch& launch) {
  return fmt::format("launch={}\nwork={}\n", bash_quoted(launch.folder.string()),
                     bash_quoted(launch.work_directory.string()));
}

std::string script_files(const Launch& launch) {
  return fmt::format("tracker={}\nlog=$launch/{}\njournal=$launch/{}\n", bash_quoted(launch.tracker.string()), kLogName,
                     kJournalName);
}

std::string script_patience(const Launch& launch, const std::string& run) {
  return fmt::format("lock={}\npatience={}\n", bash_quoted(run + "/" + train::kRunLock), launch.patience);
}

std::string script_exports(const Launch& launch) {
  std::string text;
  if (launch.work == Work::ranks) text += kForget;
  for (const auto& [name, value] : environment_of(launch, secret_in_folder(launch)))
    text += fmt::format("export {}={}\n", name, bash_quoted(value));
  return text;
}

const char* const kScriptFunctions = R"sh(say() { echo "megalith launch: $*"; }
note() { echo "$(date +%FT%T%z) $*" >>"$journal"; }

# end CODE REASON: nothing of this launch starts again. The first reason stays.
end() {
  note end "$generation" "$job" "$1" "$2"
  [[ -e $launch/ended ]] || echo "$1 $2" >"$launch/ended"
  say "$2 (exit code $1)"
  exit "$1"
}
)sh";

const char* const kNewestCheckpoint = R"sh(# Steps that the newest checkpoint has behind it; -1: there is none.
newest_checkpoint() {
  local step=-1
  [[ -z $tracker ]] || read -r step 2>/dev/null <"$tracker"
  [[ $step =~ ^[0-9]+$ ]] && echo "$step" || echo -1
}
)sh";

const char* const kWaitForRun =
    R"sh(# Processes of an earlier start may still be at work on the run: on a node that was cut off, until they notice that.
wait_for_run() {
  local waited
  [[ -e $lock ]] && type -P flock >/dev/null || return 0
  for ((waited = 0; waited < patience; waited += 5)); do
    flock --timeout=$((waited > 0 ? 5 : 0)) --conflict-exit-code=99 "$lock" true
    (($? == 99)) || return 0
    ((waited > 0)) || say "the run is in use by $(head -n 1 "$lock"): waiting at most $patience s for its end"
    [[ ! -e $launch/stop ]] || return 0
  done
}
)sh";

const char* const kScriptStart = R"sh(# There is no run on storage that this node does not see.
cd "$work" && [[ -w $launch ]] || exit 2
exec >>"$log" 2>&1
: >>"$journal"
generation=$(grep -c '^[^ ]* start ' "$journal")
if [[ -e $launch/ended ]]; then
  read -r code reason <"$launch/ended"
  say "this launch has ended: $reason; remove $launch/ended to start it again"
  exit "$code"
fi
# A start without an end: nothing of it lived to say why.
if [[ $(tail -n 1 "$journal") =~ ^[^\ ]+\ start\ ([0-9]+)\ ([^\ ]+)\ (.*)$ ]]; then
  note end "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" 137 "killed on ${BASH_REMATCH[3]}, as when a node is lost"
fi
[[ ! -e $launch/stop ]] || end 75 "stopped on request"
)sh";

}  // namespace megalith::launch
