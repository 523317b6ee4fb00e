#include "launch/job_script.h"

#include <fmt/format.h>

#include "launch/bash_quote.h"

namespace megalith::launch {

std::string script_settings(const Launch& launch) {
  return fmt::format("launch={}\nwork={}\ntracker={}\n", bash_quoted(launch.folder.string()),
                     bash_quoted(launch.work_directory.string()), bash_quoted(launch.tracker.string()));
}

std::string script_exports(const Launch& launch) {
  std::string text;
  for (const auto& [name, value] : environment_of(launch))
    text += fmt::format("export {}={}\n", name, bash_quoted(value));
  return text;
}

const char* const kScriptFunctions = R"sh(say() { echo "megalith launch: $*"; }
note() { echo "$(date +%FT%T%z) $*" >>"$launch/journal"; }

# Steps that the newest checkpoint has behind it; -1: there is none.
newest_checkpoint() {
  local step=-1
  [[ -z $tracker ]] || read -r step 2>/dev/null <"$tracker"
  [[ $step =~ ^[0-9]+$ ]] && echo "$step" || echo -1
}

# end CODE REASON: nothing of this launch starts again.
end() {
  note end "$generation" "$job" "$1" "$2"
  echo "$1 $2" >"$launch/ended"
  say "$2 (exit code $1)"
  exit "$1"
}
)sh";

const char* const kScriptStart = R"sh(# There is no run on storage that this node does not see.
cd "$work" && [[ -w $launch ]] || exit 2
exec >>"$launch/log.txt" 2>&1
: >>"$launch/journal"
generation=$(grep -c '^[^ ]* start ' "$launch/journal")
if [[ -e $launch/ended ]]; then
  read -r code reason <"$launch/ended"
  say "this launch has ended: $reason; remove $launch/ended to start it again"
  exit "$code"
fi
[[ ! -e $launch/stop ]] || end 75 "stopped on request"
)sh";

}  // namespace megalith::launch
