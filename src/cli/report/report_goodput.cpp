#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/accepts.h"
#include "cli/paths.h"
#include "cli/report/report_verbs.h"
#include "core/error.h"
#include "core/file.h"
#include "core/words.h"
#include "observe/goodput/goodput.h"
#include "observe/logs/event_reader.h"
#include "observe/logs/run_history.h"

namespace megalith::cli {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string job_name;
  std::string log_file;
  std::string export_to;
  std::optional<double> reference_step_time;
  double lookback_days = 7.0;
  bool verbose = false;
};

[[noreturn]] void ask_for_log(const Options& options) {
  const std::string job = options.job_name.empty() ? "JOB" : options.job_name;
  user_error(
      "no log was given. Give a run directory, its events.jsonl, or the goodput log of Google's resiliency library; "
      "this "
      "program does not call Cloud Logging itself, but reads what it exports:\n"
      "  gcloud logging read 'logName=\"projects/PROJECT/logs/{0}-goodput\" AND severity>=INFO' --project PROJECT \\\n"
      "    --freshness {1:.0f}h --order asc --format json | jq -c '.[]' > {0}-goodput.jsonl\n"
      "  megalith report goodput --job-name {0} --log-file {0}-goodput.jsonl --reference-step-time SECONDS",
      job, std::ceil(options.lookback_days * 24.0));
}

fs::path find_log(const fs::path& given) {
  if (!observe::is_there(given)) user_error("{}: no such file or directory", given.string());
  if (!fs::is_directory(given)) return given;
  if (observe::is_there(given / "events.jsonl")) return given / "events.jsonl";
  user_error("{} is not a run directory: it holds no events.jsonl", given.string());
}

std::string list_jobs(const observe::RunEvents& log) {
  std::string text;
  for (const auto& [job, lines] : log.jobs)
    text += fmt::format("{}'{}' ({} lines)", text.empty() ? "" : ", ", job, lines);
  return text;
}

void check_found(const Options& options, const fs::path& path, const observe::RunEvents& log) {
  if (log.jobs.empty())
    user_error("{} holds no events: of {} lines none is one of Megalith's events.jsonl or of Google's goodput log",
               path.string(), log.lines);
  if (options.job_name.empty() && log.jobs.size() > 1)
    user_error("{} holds several jobs; choose one with --job-name: {}", path.string(), list_jobs(log));
  if (log.events.empty())
    user_error("{} holds no events of the job '{}'; it holds {}", path.string(), options.job_name, list_jobs(log));
}

std::string describe_reading(const Options& options, const observe::RunEvents& log, const observe::Goodput& goodput,
                             const observe::WallTime& wall) {
  std::string text =
      fmt::format("reference step time {:.6g} s ({})\n", wall.reference_step_time,
                  options.reference_step_time ? "--reference-step-time" : "the median of the log's own steps");
  if (goodput.progress) text += fmt::format("goodput by steps {:.2f}%, ", goodput.percentage());
  text += fmt::format("goodput by time {:.2f}%; {} kept\n", wall.productive_fraction() * 100.0,
                      counted(wall.kept_steps, "step"));
  text += fmt::format("{} read", counted(log.lines, "line"));
  if (log.bad_lines > 0) text += fmt::format(", {} torn, damaged or foreign left out", log.bad_lines);
  if (log.duplicate_lines > 0) text += fmt::format(", {} duplicates left out", log.duplicate_lines);
  if (log.clock_steps > 0) text += fmt::format(", {} steps of a clock corrected", log.clock_steps);
  return text + "\n";
}

int run_goodput(const Options& options) {
  if (options.log_file.empty()) ask_for_log(options);
  check_output_file("--export", options.export_to);
  const fs::path path = find_log(options.log_file);
  const observe::RunEvents log = observe::read_run_events(path, options.job_name);
  check_found(options, path, log);
  const observe::Goodput goodput = observe::measure_goodput(log, options.reference_step_time);
  const observe::WallTime wall = observe::explain_wall_time(log, options.reference_step_time);
  std::cout << observe::goodput_table(log, goodput) << '\n'
            << observe::wall_time_tables(wall) << '\n'
            << describe_reading(options, log, goodput, wall);
  if (options.verbose) std::cout << '\n' << observe::slice_table(wall);
  if (!options.export_to.empty()) {
    replace_file(options.export_to, observe::goodput_json(log, goodput, wall).dump(2));
    std::cout << fmt::format("\nMetrics exported to: {}\n", options.export_to);
  }
  return kExitComplete;
}

}  // namespace

void add_report_goodput(CLI::App& report, Action& run) {
  CLI::App* verb = report.add_subcommand(
      "goodput",
      "How much of a job's time made progress, and where the rest went.\n\n"
      "  megalith report goodput runs/demo\n"
      "  megalith report goodput --job-name my-job --log-file my-job-goodput.log --reference-step-time 8 --export "
      "goodput.json\n\n"
      "The first table is that of the calculator in Google's resiliency library; the second explains every second\n"
      "(docs/metrics.md).");
  const auto options = std::make_shared<Options>();
  verb->add_option("--job-name", options->job_name,
                   "the job, or the id of a run; not needed where the log has only one");
  verb->add_option("--log-file,log", options->log_file,
                   "a run directory, an events.jsonl, or a goodput log of Google's resiliency library");
  verb->add_option("--export", options->export_to, "write the numbers to this file as JSON");
  verb->add_option("--reference-step-time", options->reference_step_time,
                   "seconds of a step that nothing disturbs; without it, the median of the log's own steps")
      ->check(above(0));
  verb->add_option("--gcloud-logging-lookback-days", options->lookback_days,
                   "without a log: how many days to export from Cloud Logging")
      ->check(above(0))
      ->capture_default_str();
  verb->add_flag("--verbose", options->verbose, "list the timeline too");
  verb->callback(
      [options, &run] { run = [options] { return report_or_explain([&] { return run_goodput(*options); }); }; });
}

}  // namespace megalith::cli
