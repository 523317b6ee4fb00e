#include "launch/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/clock.h"
#include "core/error.h"
#include "core/words.h"
#include "observe/logs/run_history.h"
#include "observe/report/report_run.h"

namespace megalith::launch {

namespace {

using Phase = JobState::Phase;

constexpr size_t kShownLines = 12;  // of the journal
constexpr double kSilence = 10.0;   // seconds since the newest step, worth a word

const JobState* first_of(const std::vector<JobState>& states, Phase phase) {
  const auto found =
      std::find_if(states.begin(), states.end(), [&](const JobState& state) { return state.phase == phase; });
  return found == states.end() ? nullptr : &*found;
}

std::string waiting_in_words(const JobState& job) {
  const std::string why = job.why.empty() ? "" : fmt::format(": {}", job.why);
  const std::string start = job.may_start.empty() ? "" : fmt::format("; may start at {}", job.may_start);
  return fmt::format("waiting, job {}{}{}", job.id, why, start);
}

// It waits again, and its script did not live to say why.
std::string lost_start_in_words(const LaunchRecord& record) {
  const std::vector<JournalLine> journal = record.journal();
  if (!record.stages.empty() || journal.empty() || !journal.back().starts) return "";
  return fmt::format("; start {} on {} was killed, as when a node is lost", journal.back().generation + 1,
                     journal.back().detail);
}

std::string tasks_in_words(const LaunchRecord& record, const LaunchRecord::Stage& stage) {
  return fmt::format("{} of {} done", record.tasks_done(stage.name), counted(stage.tasks, "task"));
}

std::string stages_in_words(const LaunchRecord& record, const std::vector<JobState>& states) {
  std::string text;
  for (size_t i = 0; i < record.stages.size(); ++i) {
    const LaunchRecord::Stage& stage = record.stages[i];
    std::string state;
    if (i < states.size() && states[i].phase == Phase::running) state = fmt::format(", running on {}", states[i].nodes);
    if (i < states.size() && states[i].phase == Phase::waiting)
      state = fmt::format(", {}", waiting_in_words(states[i]));
    text +=
        fmt::format("{:<10}{}: {}{}\n", text.empty() ? "stages" : "", stage.name, tasks_in_words(record, stage), state);
  }
  return text;
}

// The job is gone, and its script did not live to say why.
std::string lost_in_words(const LaunchRecord& record, const std::vector<JobState>& states) {
  const std::vector<JournalLine> journal = record.journal();
  const JobState* ended = first_of(states, Phase::ended);
  const std::string word =
      ended == nullptr ? "the cluster has forgotten the job" : fmt::format("the cluster says {}", ended->word);
  if (journal.empty() && record.kind == "kubernetes") return fmt::format("ended: {}", word);
  if (journal.empty() && ended != nullptr && ended->word.starts_with("CANCELLED"))
    return fmt::format("ended before it began: {}, as when a launch that it waits for (--after) fails", word);
  if (journal.empty())
    return fmt::format("ended before its first line: {}; can the nodes see {}?", word, record.folder.string());
  for (const LaunchRecord::Stage& stage : record.stages) {
    if (record.tasks_done(stage.name) < stage.tasks)
      return fmt::format("ended within {}, {}: {}; launch again to do what is missing", stage.name,
                         tasks_in_words(record, stage), word);
  }
  const JournalLine& last = journal.back();
  if (last.starts) return fmt::format("ended without a word on {}: {}", last.detail, word);
  return fmt::format("ended: {} (exit code {})", last.detail, last.code);
}

// A run that hangs, or whose node is lost, looks as if it ran until somebody notices.
std::string silence_in_words(const observe::RunHistory& history) {
  const auto last = history.time_of_step.at(*history.last_step);
  const double silence = last ? wall_seconds() - *last : 0.0;
  return silence < kSilence ? "" : fmt::format(", {} ago", duration_in_words(silence));
}

std::string run_in_words(const LaunchRecord& record, bool runs) {
  const observe::RunHistory history = observe::read_run_history(record.run_directory);
  if (!history.last_step) return "";
  std::string text = fmt::format("step      {}", *history.last_step + 1);
  if (const auto steps = history.max_steps()) text += fmt::format(" of {}", *steps);
  if (const auto loss = history.loss()) text += fmt::format(", loss {:.4g}", *loss);
  const auto speed = observe::throughput_of(history);
  if (!speed.empty()) text += fmt::format(", {} tokens/s", with_commas(speed.back().y));
  text += runs ? silence_in_words(history) + "\n" : "\n";
  text += history.saved_steps ? fmt::format("saved     step {}\n", *history.saved_steps) : "saved     nothing yet\n";
  return text;
}

std::string journal_in_words(const LaunchRecord& record) {
  const std::vector<JournalLine> journal = record.journal();
  std::string text;
  const size_t first = journal.size() > kShownLines ? journal.size() - kShownLines : 0;
  if (first > 0)
    text += fmt::format("          {} earlier lines are in {}\n", first, record.file(kJournalName).string());
  for (size_t i = first; i < journal.size(); ++i) {
    const JournalLine& line = journal[i];
    const std::string what = line.starts
                                 ? fmt::format("start {} on {}", line.generation + 1, line.detail)
                                 : fmt::format("end {}, exit code {}: {}", line.generation + 1, line.code, line.detail);
    text += fmt::format("          {}  job {}, {}\n", line.time, line.job, what);
  }
  return text.empty() ? "" : "starts\n" + text;
}

}  // namespace

bool is_alive(const std::vector<JobState>& states) {
  return first_of(states, Phase::running) != nullptr || first_of(states, Phase::waiting) != nullptr;
}

std::vector<JobState> states_of(const LaunchRecord& record) {
  if (record.ending() || record.ids.empty()) return {};
  return make_cluster(record.kind)->status(record);
}

std::string state_in_words(const LaunchRecord& record, const std::vector<JobState>& states) {
  if (const auto ending = record.ending()) return fmt::format("ended: {} (exit code {})", ending->reason, ending->code);
  if (record.ids.empty()) return "not submitted";
  const std::string stopping = record.stop_asked() ? ", asked to stop" : "";
  if (const JobState* job = first_of(states, Phase::running)) {
    const std::string nodes = job->nodes.empty() ? "" : fmt::format(" on {}", job->nodes);
    return fmt::format("running, job {}{}{}{}", job->id, nodes, job->why.empty() ? "" : "; " + job->why, stopping);
  }
  if (const JobState* job = first_of(states, Phase::waiting))
    return waiting_in_words(*job) + lost_start_in_words(record) + stopping;
  return lost_in_words(record, states);
}

std::string describe_status(const LaunchRecord& record, const std::vector<JobState>& states,
                            const std::string& trouble) {
  std::string text = fmt::format("{}  {} on {}, {} node{}\n", record.name,
                                 fmt::join(record.command.begin(), record.command.begin() + 1, " "), record.cluster,
                                 record.nodes, record.nodes == 1 ? "" : "s");
  text += fmt::format("state     {}\n", trouble.empty() ? state_in_words(record, states) : "unknown: " + trouble);
  text += stages_in_words(record, states);
  const bool runs = first_of(states, Phase::running) != nullptr && !record.ending();
  const std::string run = run_in_words(record, runs);
  const std::string last = run.empty() && runs ? make_cluster(record.kind)->last_words(record) : "";
  text += run + (last.empty() ? "" : fmt::format("log       {}\n", last));
  text += fmt::format("folder    {}\n", record.folder.string());
  return text + journal_in_words(record);
}

}  // namespace megalith::launch
