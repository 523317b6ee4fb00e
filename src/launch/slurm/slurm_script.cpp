#include "launch/slurm/slurm_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "launch/bash_quote.h"
#include "launch/job_script.h"
#include "launch/slurm/slurm_options.h"
#include "launch/slurm/slurm_stages.h"
#include "launch/slurm/slurm_time.h"

namespace megalith::launch {

namespace {

const char* const kComment =
    R"sh(# One start of a run that may take several. How it goes on depends on the exit code of the program:
#   0 complete, 2 the input is wrong, 70 given up: the job ends with it.
#   75 stopped early and saved: it starts again, but for the second time in a row without a newer checkpoint.
#   any other: it starts again if there is a newer checkpoint than at its start.
)sh";

const char* const kYield =
    R"sh(# yield CODE: a node that was cut off can come to its end after the next start has begun, which alone has a say then.
yield() {
  (($(grep -c '^[^ ]* start ' "$journal") > generation + 1)) || return 0
  say "start $((generation + 1)) was given up for lost, and another has begun (exit code $1)"
  exit "$1"
}
)sh";

const char* const kNoteStart = R"sh(
note start "$generation" "$job" "$SLURM_JOB_NODELIST"
)sh";

const char* const kWait = R"sh(wait_for_run
[[ ! -e $launch/stop ]] || end 75 "stopped on request"
)sh";

const char* const kTimeLimit = R"sh(# Training stops and saves `margin` seconds before Slurm's time limit.
time_limit=()
left=$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%L)
if [[ $left =~ ^(([0-9]+)-)?(([0-9]+):)?([0-9]+):([0-9]+)$ ]]; then
  at=("${BASH_REMATCH[@]}")
  seconds=$((10#0${at[2]} * 86400 + 10#0${at[4]} * 3600 + 10#${at[5]} * 60 + 10#${at[6]} - margin))
  ((seconds > 0)) || seconds=1
  ((max_time == 0 || seconds < max_time)) || seconds=$max_time
  time_limit=("$(printf 'trainer.max_time=%02d:%02d:%02d:%02d' $((seconds / 86400)) $((seconds / 3600 % 24)) \
    $((seconds / 60 % 60)) $((seconds % 60)))")
  say "Slurm leaves $left; training stops $margin s before that (${time_limit[0]})"
fi
)sh";

const char* const kRequeue =
    R"sh(# again CODE REASON: this job goes back to the queue, and on from the newest checkpoint.
again() {
  note end "$generation" "$job" "$1" "$2"
  state=$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T) || state=RUNNING
  if [[ $state != RUNNING ]]; then
    say "$2 (exit code $1); Slurm says $state, so that it is not started again"
    exit "$1"
  fi
  say "$2 (exit code $1); back to the queue"
  trap - TERM
  for _ in {1..60}; do
    yield "$1"
    scontrol requeue "$SLURM_JOB_ID" && sleep 600  # until Slurm ends this script
    sleep 10
  done
  yield "$1"
  end "$1" "$2; Slurm does not take the job back into its queue"
}
)sh";

const char* const kChain = R"sh(# again CODE REASON: the next job of the chain goes on from the newest checkpoint.
again() {
  ((generation + 1 < chain)) || end "$1" "$2; no job of the chain is left: launch again to go on"
  note end "$generation" "$job" "$1" "$2"
  say "$2 (exit code $1); the next job of the chain goes on"
  exit "$1"
}
)sh";

const char* const kNoRequeue = R"sh(# again CODE REASON: the profile does not want this job to go back to the queue.
again() { end "$1" "$2; launch again to go on"; }
)sh";

const char* const kPolicy = R"sh(code=$?
yield "$code"
after=$(newest_checkpoint)
((after > before)) && rm -f "$launch/fruitless"
case $code in
  0) end 0 "complete" ;;
  2) end 2 "the input is wrong, the log says what" ;;
  70) end 70 "given up" ;;
esac
[[ ! -e $launch/stop ]] || end "$code" "stopped on request"
((code == 75)) && reason="stopped early" || reason="failed"
if ((after > before)); then again "$code" "$reason, step $after saved"; fi
((code == 75)) || end "$code" "failed without a newer checkpoint than at its start (step $before)"
[[ ! -e $launch/fruitless ]] || end 75 "stopped early twice in a row without a newer checkpoint"
: >"$launch/fruitless"
again 75 "stopped early, nothing saved"
)sh";

class Script {
 public:
  explicit Script(const Launch& launch) : launch_(launch), profile_(launch.profile) {}

  std::string text() const {
    std::string text = "#!/bin/bash\n";
    for (const std::string& option : sbatch_options(launch_))
      text += fmt::format("#SBATCH {}\n", sbatch_quoted(option));
    text += fmt::format("\n{}\n{}{}job=$SLURM_JOB_ID\n", kComment, script_settings(launch_), script_files(launch_));
    if (launch_.saves) text += fmt::format("margin={}\nmax_time={}\n", save_margin(profile_), launch_.max_time);
    if (launch_.saves) text += script_patience(launch_, launch_.run_directory.string());
    if (launch_.chain > 1) text += fmt::format("chain={}\n", launch_.chain);
    const char* const again = launch_.chain > 1 ? kChain : requeues() ? kRequeue : kNoRequeue;
    text += fmt::format("\n{}\n{}\n{}\n{}\n", kScriptFunctions, kNewestCheckpoint, kYield, again);
    if (launch_.saves) text += fmt::format("{}\n", kWaitForRun);
    text += fmt::format("{}\n{}{}", kScriptStart, environment(), kNoteStart);
    if (launch_.saves) text += fmt::format("{}\n{}", kWait, kTimeLimit);
    text += fmt::format("\n{}", run());
    text += kPolicy;
    return text;
  }

 private:
  bool requeues() const { return launch_.chain == 1 && profile_.flag("slurm.requeue"); }

  std::string environment() const {
    std::string text;
    if (launch_.work == Work::ranks) {
      text += R"sh(export MASTER_ADDR MASTER_PORT MEGALITH_GENERATION
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))  # two jobs may share a node
MEGALITH_GENERATION=$generation
)sh";
    }
    return text + script_exports(launch_);
  }

  std::string run() const {
    const bool one_each = one_task_per_rank(launch_);
    const std::vector<std::string> start = srun_words(launch_, one_each ? launch_.ranks_per_node : 1);
    const std::vector<std::string> command =
        task_command(profile_, one_each ? command_per_rank(launch_) : command_per_node(launch_));
    std::string text = R"sh(before=$(newest_checkpoint)
trap : TERM  # goes to the ranks; this script waits for their answer
)sh";
    text += bash_command(start, 3) + " \\\n  " + bash_command(command, launch_.verb.size() + 1);
    if (launch_.saves) text += " \\\n  \"${time_limit[@]}\"";
    return text + "\n";
  }

  const Launch& launch_;
  const Profile& profile_;
};

}  // namespace

std::string slurm_script(const Launch& launch) {
  return launch.stages.empty() ? Script(launch).text() : slurm_stages_script(launch);
}

std::vector<std::string> slurm_script_problems(const Launch& launch) {
  std::vector<std::string> problems;
  const Profile& profile = launch.profile;
  for (const std::string& option : sbatch_options(launch)) {
    try {
      sbatch_quoted(option);
    } catch (const Error& error) {
      problems.emplace_back(error.what());
    }
  }
  for (const char* key : {"slurm.sbatch", "slurm.srun"}) {
    for (const std::string& option : profile.texts(key)) {
      if (!option.starts_with("--"))
        problems.push_back(fmt::format("`{}`: '{}' is not an option: expected --NAME or --NAME=VALUE", key, option));
    }
  }
  const std::string time = profile.text("slurm.time");
  if (!time.empty()) {
    const auto seconds = parse_slurm_time(time);
    if (!seconds) {
      problems.push_back(fmt::format(
          "the time limit '{}' is none that Slurm knows: write 90 (minutes), 90:00, 1:30:00, 1-12 or 1-12:30:00",
          time));
    } else if (launch.saves && *seconds <= static_cast<int64_t>(profile.seconds("save_margin"))) {
      problems.push_back(
          fmt::format("the time limit {} is not longer than the {} s before it at which training stops and saves: give "
                      "more --time, or less with --set save_margin=60",
                      time, profile.seconds("save_margin")));
    }
  }
  for (const Mount& mount : profile.mounts()) {
    if (mount.source.find_first_of(":,") != std::string::npos || mount.target.find_first_of(":,") != std::string::npos)
      problems.push_back(
          fmt::format("the mount {} -> {} has a ':' or ',', which pyxis cannot take", mount.source, mount.target));
    if (mount.source.empty())
      problems.push_back(fmt::format("the mount of {} has no `source`, a path of the node", mount.target));
  }
  return problems;
}

}  // namespace megalith::launch
