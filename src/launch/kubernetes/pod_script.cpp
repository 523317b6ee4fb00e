#include "launch/kubernetes/pod_script.h"

#include <fmt/format.h>

#include "launch/bash_quote.h"
#include "launch/job_script.h"

namespace megalith::launch {

namespace {

const char* const kStart = R"sh(
job=${HOSTNAME%-*}
index=${JOB_COMPLETION_INDEX:-0}
note() { [[ ! -w $launch ]] || echo "$(date +%FT%T%z) $*" >>"$launch/journal"; }
((index > 0)) || [[ -z $launch ]] || mkdir -p "$launch"
generation=$(grep -sc '^[^ ]* start ' "$launch/journal")
: "${generation:=0}"
)sh";

// After `helm upgrade`, say, the pods of the revision before are still saving.
const char* const kWaitOfFirst = R"sh(
trap 'exit 75' TERM INT USR1
((index > 0)) || wait_for_run
)sh";

// Kubernetes signals the first process alone; bash ends a wait at every signal.
const char* const kRun = R"sh(
((index > 0)) || note start "$generation" "$job" "$NODE_NAME"
"$@" &
program=$!
for signal in TERM INT USR1; do trap "interrupted=1; kill -$signal $program" $signal; done
interrupted=1
while ((interrupted)); do
  interrupted=0
  wait "$program"
  ((code = $? == 127 ? code : $?))
done

case $code in
  0) reason="complete" ;;
  2) reason="the input is wrong, the log says what" ;;
  70) reason="given up" ;;
  75) reason="stopped early" ;;
  *) reason="failed on $NODE_NAME" ;;
esac
if ((index == 0 || (code != 0 && code != 75))); then note end "$generation" "$job" "$code" "$reason"; fi
if ((index == 0 && (code == 0 || code == 2 || code == 70))) && [[ -w $launch ]]; then echo "$code $reason" >"$launch/ended"; fi
# The pod that follows must not meet the rank 0 of this start.
((code == 0 || index == 0)) || sleep 10
exit "$code"
)sh";

}  // namespace

std::string pod_script(const Launch& launch) {
  std::string text =
      "#!/bin/bash\n"
      "# What each pod runs: its arguments as a command, and around it one line for each start and end in the launch's "
      "journal.\n\n";
  text += fmt::format("launch={}\n", bash_quoted(launch.folder_in_job));
  text += kStart + 1;
  for (const std::string& file : launch.profile.texts("source")) {
    const std::string name = bash_quoted(file);
    text += fmt::format("[[ -r {} ]] || {{ echo \"the profile's file\" {} \"is not here\"; exit 2; }}\nsource {}\n",
                        name, name, name);
  }
  if (launch.work == Work::workers) text += "set -- \"$@\" --worker \"$index/$NNODES\"\n";
  if (launch.saves && !launch.folder_in_job.empty()) {
    const std::string run = std::filesystem::path(launch.folder_in_job).parent_path().parent_path().string();
    text += fmt::format("\n{}say() {{ echo \"megalith launch: $*\"; }}\n{}{}", script_patience(launch, run),
                        kWaitForRun, kWaitOfFirst);
  }
  return text + kRun;
}

}  // namespace megalith::launch
