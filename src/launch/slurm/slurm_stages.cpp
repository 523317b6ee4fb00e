#include "launch/slurm/slurm_stages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launch/bash_quote.h"
#include "launch/job_script.h"
#include "launch/slurm/slurm_options.h"

namespace megalith::launch {

namespace {

// How a person submits the stages. The ids are those that sbatch answers.
std::string how_to_submit(const Launch& launch) {
  std::string text;
  for (const Stage& stage : launch.stages) {
    const std::vector<std::string> after = text.empty() ? std::vector<std::string>{} : std::vector<std::string>{"$id"};
    text += fmt::format("#   id=$(sbatch --parsable {} job.sh {})\n",
                        fmt::join(stage_options(launch, stage, after), " "), stage.name);
  }
  return text;
}

std::string run(const Launch& launch) {
  std::string text = "case $stage in\n";
  for (const Stage& stage : launch.stages) {
    const std::vector<std::string> start = srun_words(launch, stage.workers);
    const std::vector<std::string> command = task_command(launch.profile, command_of(launch, stage));
    text += fmt::format("{})\ntasks={}\n{} \\\n  {}\n;;\n", stage.name, stage.tasks, bash_command(start, 3),
                        bash_command(command, stage.verb.size() + 1));
  }
  return text + "*) say \"there is no stage '$stage'\"; false ;;\nesac\n";
}

const char* const kPolicy = R"sh(code=$?
[[ ! -e $launch/stop ]] || end 75 "stopped on request"
case $code in
  0) ;;
  2) end 2 "$stage: the input is wrong, the log of task $task says what" ;;
  143) end 143 "$stage: task $task was ended by Slurm, at its time limit or by scancel; launch again to go on" ;;
  *) end "$code" "$stage: task $task failed on $SLURM_JOB_NODELIST" ;;
esac
: >"$launch/tasks/$stage.$task.done"
done=("$launch/tasks/$stage".*.done)
if [[ $stage == "$last" ]] && ((${#done[@]} == tasks)); then end 0 "complete"; fi
note end "$generation" "$job" 0 "$stage: task $task complete"
)sh";

}  // namespace

std::vector<std::string> stage_options(const Launch& launch, const Stage& stage,
                                       const std::vector<std::string>& after) {
  std::vector<std::string> options = {fmt::format("--job-name={}.{}", launch.name, stage.name),
                                      fmt::format("--ntasks-per-node={}", stage.workers)};
  const std::string limit = stage.at_once < stage.tasks ? fmt::format("%{}", stage.at_once) : "";
  options.push_back(fmt::format("--array=0-{}{}", stage.tasks - 1, limit));
  if (!after.empty()) {
    options.push_back(fmt::format("--dependency=afterok:{}", fmt::join(after, ":")));
    options.emplace_back("--kill-on-invalid-dep=yes");
  }
  return options;
}

std::string slurm_stages_script(const Launch& launch) {
  std::string text = "#!/bin/bash\n";
  for (const std::string& option : sbatch_options(launch)) text += fmt::format("#SBATCH {}\n", sbatch_quoted(option));
  text += R"sh(
# Stages that wait for each other, each an array of tasks that divide its work; this is one task of one stage. A task that fails ends
# the launch, and what waits for its stage is cancelled. Work that is done is not done again: submit all of it again to go on.
)sh";
  text += how_to_submit(launch);
  text += fmt::format("\n{}", script_settings(launch));
  text += fmt::format("last={}\n", launch.stages.back().name);
  text += R"sh(stage=$1
task=${SLURM_ARRAY_TASK_ID:-0}
log=$launch/tasks/$stage.$task.log
journal=$launch/tasks/$stage.$task.journal
job=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}_$task

)sh";
  text += fmt::format("{}\n{}\n{}\n", kScriptFunctions, kScriptStart, script_exports(launch));
  text += R"sh(note start "$generation" "$job" "$SLURM_JOB_NODELIST"
trap : TERM  # goes to the program; this script waits for its answer
)sh";
  return text + run(launch) + kPolicy;
}

}  // namespace megalith::launch
