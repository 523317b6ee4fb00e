#include "launch/slurm/slurm_cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <sstream>

#include "config/environment/variables.h"
#include "config/scalar.h"
#include "core/error.h"
#include "core/file.h"
#include "core/process/exit_codes.h"
#include "launch/log_printer.h"
#include "launch/slurm/slurm_script.h"
#include "launch/slurm/slurm_stages.h"
#include "launch/tool.h"

namespace megalith::launch {

namespace {

constexpr double kSubmitSeconds = 60.0;
constexpr double kAskSeconds = 30.0;

// What a shell has exported for another job would silently become a part of this one.
ToolAnswer ask(std::vector<std::string> command, double seconds = kAskSeconds, std::string input = "") {
  return run_tool({.command = std::move(command),
                   .input = std::move(input),
                   .seconds = seconds,
                   .without = {"SBATCH_", "SLURM_", "SALLOC_", "SRUN_", "SQUEUE_", "SCANCEL_", "MEGALITH_STORE_SECRET"},
                   .keep = {"SLURM_CONF", "SLURM_CLUSTERS"}});
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream text(line);
  for (std::string field; std::getline(text, field, '|');) fields.emplace_back(config::trimmed(field));
  return fields;
}

bool is_one_of(const std::string& word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

JobState::Phase phase_of(const std::string& state) {
  if (is_one_of(state, {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}))
    return JobState::Phase::waiting;
  if (is_one_of(state,
                {"RUNNING", "CONFIGURING", "COMPLETING", "STAGE_OUT", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING"}))
    return JobState::Phase::running;
  return JobState::Phase::ended;
}

std::string unless_unknown(const std::string& text) {
  return is_one_of(text, {"", "N/A", "Unknown", "None", "(null)", "None assigned"}) ? "" : text;
}

std::string first_line(const std::string& text) {
  return std::string(config::trimmed(text.substr(0, text.find('\n'))));
}

// The newest start of a job, of which sacct shows only the last unless asked.
JobState ask_accounts(const std::string& id) {
  if (!has_tool("sacct")) return {.id = id};
  const ToolAnswer answer =
      ask({"sacct", "--noheader", "--parsable2", "--allocations", "--jobs=" + id, "--format=State,NodeList"});
  const bool is_known = answer.good() && !first_line(answer.output).empty();
  return is_known ? parse_sacct(id, answer.output) : JobState{.id = id};
}

JobState ask_state(const std::string& id) {
  const ToolAnswer answer = ask({"squeue", "--noheader", "--states=all", "--jobs=" + id, "--format=%T|%r|%S|%N"});
  const bool is_forgotten = answer.errors.find("Invalid job id") != std::string::npos;
  if (!answer.good() && !is_forgotten) fail(ErrorKind::io, "squeue does not answer: {}", answer.words());
  return first_line(answer.output).empty() ? ask_accounts(id) : parse_squeue(id, answer.output);
}

// How many tasks an array may have; nothing where the cluster does not say.
std::optional<int64_t> most_tasks() {
  const ToolAnswer answer = ask({"scontrol", "show", "config"});
  std::istringstream lines(answer.output);
  for (std::string name, equals, value; lines >> name;) {
    if (name == "MaxArraySize" && lines >> equals >> value) return config::read_int(value);
    lines.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

std::string sbatch(const std::vector<std::string>& options, const std::vector<std::string>& script) {
  std::vector<std::string> command = {"sbatch", "--parsable"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), script.begin(), script.end());
  const ToolAnswer answer = ask(std::move(command), kSubmitSeconds);
  if (!answer.good()) user_error("sbatch refused the job: {}", answer.words());
  const std::string id = first_line(answer.output);
  return id.substr(0, id.find(';'));  // "12;cluster" where there are several
}

// One line stands for all tasks of an array: of one that runs, else of one that waits, else of one that did not end
// well.
int weight_of(const JobState& state) {
  if (state.phase == JobState::Phase::running) return 3;
  if (state.phase == JobState::Phase::waiting) return 2;
  return state.word == "COMPLETED" ? 0 : 1;
}

template <class Parse>
JobState parse_lines(const std::string& lines, Parse&& parse) {
  JobState all = parse(first_line(lines));
  std::istringstream text(lines);
  std::vector<std::string> nodes;
  for (std::string line; std::getline(text, line);) {
    JobState state = parse(line);
    const bool is_new = std::find(nodes.begin(), nodes.end(), state.nodes) == nodes.end();
    if (state.phase == JobState::Phase::running && !state.nodes.empty() && is_new) nodes.push_back(state.nodes);
    if (weight_of(state) > weight_of(all)) all = std::move(state);
  }
  if (!nodes.empty()) all.nodes = fmt::format("{}", fmt::join(nodes, ","));
  return all;
}

void cancel(const std::string& id) {
  const ToolAnswer answer = ask({"scancel", id});
  if (!answer.good()) fail(ErrorKind::io, "scancel {}: {}", id, answer.words());
}

}  // namespace

JobState parse_squeue(const std::string& id, const std::string& lines) {
  return parse_lines(lines, [&](const std::string& line) {
    std::vector<std::string> fields = fields_of(line);
    fields.resize(4);
    JobState state{.id = id, .phase = phase_of(fields[0]), .word = fields[0], .nodes = unless_unknown(fields[3])};
    if (state.phase == JobState::Phase::running) return state;
    state.why = unless_unknown(fields[1]);
    if (state.phase == JobState::Phase::waiting) state.may_start = unless_unknown(fields[2]);
    return state;
  });
}

JobState parse_sacct(const std::string& id, const std::string& lines) {
  return parse_lines(lines, [&](const std::string& line) {
    std::vector<std::string> fields = fields_of(line);
    fields.resize(2);
    const std::string word = fields[0].substr(0, fields[0].find(' '));  // "CANCELLED by 1000"
    return JobState{.id = id, .phase = phase_of(word), .word = fields[0], .nodes = unless_unknown(fields[1])};
  });
}

std::string SlurmCluster::render(const Launch& launch) const {
  return slurm_script(launch);
}

std::vector<std::string> SlurmCluster::problems(const Launch& launch) const {
  return slurm_script_problems(launch);
}

std::vector<std::string> SlurmCluster::obstacles() const {
  std::vector<std::string> problems;
  for (const char* tool : {"sbatch", "squeue", "scancel"}) {
    if (!has_tool(tool))
      problems.push_back(
          fmt::format("there is no {} here: launch where Slurm's commands are, on a login node of the cluster", tool));
  }
  const config::Lookup environment = config::process_environment;
  const config::Variables variables(environment);
  if (const auto job = variables.text("SLURM_JOB_ID"))
    problems.push_back(
        fmt::format("this is inside of Slurm's job {}: launch from a login node, or unset SLURM_JOB_ID", *job));
  return problems;
}

std::string SlurmCluster::check(const Launch& launch) const {
  const std::string script = render(launch);
  const auto test = [&](const std::vector<std::string>& options) {
    std::vector<std::string> command = {"sbatch", "--test-only"};
    command.insert(command.end(), options.begin(), options.end());
    const ToolAnswer answer = ask(std::move(command), kSubmitSeconds, script);
    if (!answer.good()) user_error("Slurm would not take the job: {}", answer.words());
    return answer.words();
  };
  if (launch.stages.empty()) return test({});
  std::vector<std::string> answers;
  for (const Stage& stage : launch.stages)
    answers.push_back(fmt::format("{}: {}", stage.name, test(stage_options(launch, stage, {}))));
  return fmt::format("{}", fmt::join(answers, "\n"));
}

std::vector<std::string> SlurmCluster::refusals(const Launch& launch) const {
  std::vector<std::string> problems;
  if (launch.stages.empty()) return problems;
  const auto most = most_tasks();
  for (const Stage& stage : launch.stages) {
    if (most && stage.tasks > *most)
      problems.push_back(
          fmt::format("{}: an array of {} tasks, where this cluster takes {} (MaxArraySize): give --array {} or less, "
                      "each task does its share",
                      stage.name, stage.tasks, *most, *most));
  }
  return problems;
}

std::vector<std::string> SlurmCluster::submit(const Launch& launch) const {
  if (!launch.stages.empty()) return submit_stages(launch);
  std::vector<std::string> options;
  if (!launch.after.empty()) {
    const bool is_singleton = launch.chain > 1 || launch.profile.flag("slurm.singleton");
    options = {fmt::format("--dependency=afterok:{}{}", fmt::join(launch.after, ":"), is_singleton ? ",singleton" : ""),
               "--kill-on-invalid-dep=yes"};
  }
  std::vector<std::string> ids;
  try {
    for (int64_t i = 0; i < launch.chain; ++i)
      ids.push_back(sbatch(options, {(launch.folder / rendered_name()).string()}));
  } catch (const Error&) {
    for (const std::string& id : ids) cancel(id);
    throw;
  }
  return ids;
}

std::vector<std::string> SlurmCluster::submit_stages(const Launch& launch) const {
  std::vector<std::string> ids, after = launch.after;
  try {
    for (const Stage& stage : launch.stages) {
      ids.push_back(
          sbatch(stage_options(launch, stage, after), {(launch.folder / rendered_name()).string(), stage.name}));
      after = {ids.back()};
    }
  } catch (const Error&) {
    for (const std::string& id : ids) cancel(id);
    throw;
  }
  return ids;
}

std::vector<JobState> SlurmCluster::status(const LaunchRecord& record) const {
  std::vector<JobState> states;
  for (const std::string& id : record.ids) states.push_back(ask_state(id));
  return states;
}

void SlurmCluster::logs(const LaunchRecord& record, const LogOptions& options) const {
  print_log(record, options, [&] {
    const std::vector<JobState> states = status(record);
    return std::all_of(states.begin(), states.end(), [](const JobState& state) {
      return state.phase == JobState::Phase::ended || state.phase == JobState::Phase::forgotten;
    });
  });
}

void SlurmCluster::stop(const LaunchRecord& record, bool now) const {
  // Before any signal: the script looks for it when the program has ended.
  replace_file(record.file(kStopName), "");
  bool some_run = false, some_ran = false;
  for (const JobState& state : status(record)) {
    if (state.phase == JobState::Phase::ended || state.phase == JobState::Phase::forgotten) continue;
    some_ran = some_ran || state.phase == JobState::Phase::running;
    if (state.phase == JobState::Phase::waiting || now || !record.stages.empty()) {
      cancel(state.id);
      continue;
    }
    some_run = true;
    const ToolAnswer answer = ask({"scancel", "--signal=USR1", state.id});
    if (!answer.good()) fail(ErrorKind::io, "scancel --signal=USR1 {}: {}", state.id, answer.words());
  }
  if (some_run || record.ending()) return;
  // What was ended at once may not have saved.
  const int code = now && some_ran && record.stages.empty() ? kExitInterrupted : kExitStoppedEarly;
  replace_file(record.file(kEndedName), fmt::format("{} stopped on request\n", code));
}

}  // namespace megalith::launch
