#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/accepts.h"
#include "cli/launch/launch_verbs.h"
#include "core/error.h"
#include "launch/cluster.h"
#include "launch/describe.h"

namespace megalith::cli {

namespace {

struct Asked {
  std::vector<launch::JobState> states;
  std::string trouble;  // why the cluster could not be asked; empty: it could
};

Asked ask(const launch::LaunchRecord& record) {
  try {
    return {.states = launch::states_of(record), .trouble = ""};
  } catch (const Error& error) {
    return {.states = {}, .trouble = error.what()};
  }
}

void add_name(CLI::App& verb, const std::shared_ptr<std::string>& name) {
  verb.add_option("launch", *name, "its name, or its run directory")->required();
}

int list() {
  const std::vector<launch::LaunchRecord> records = launch::all_launches();
  if (records.empty()) std::cout << "there are no launches\n";
  size_t width = 0;
  for (const launch::LaunchRecord& record : records) width = std::max(width, record.name.size());
  std::string silence;  // of Slurm's controller, which takes seconds each time it is asked
  for (const launch::LaunchRecord& record : records) {
    const bool is_silent = record.kind == "slurm" && !silence.empty() && !record.ending();
    const Asked asked = is_silent ? Asked{.states = {}, .trouble = silence} : ask(record);
    if (record.kind == "slurm" && !asked.trouble.empty()) silence = asked.trouble;
    std::cout << fmt::format(
        "{:<{}}  {:<10}  {}\n", record.name, width, record.kind,
        asked.trouble.empty() ? launch::state_in_words(record, asked.states) : "unknown: " + asked.trouble);
  }
  return kExitComplete;
}

int status(const std::string& name) {
  const launch::LaunchRecord record = launch::find_launch(name);
  const Asked asked = ask(record);
  std::cout << launch::describe_status(record, asked.states, asked.trouble);
  return kExitComplete;
}

int stop(const std::string& name, bool now) {
  const launch::LaunchRecord record = launch::find_launch(name);
  if (const auto ending = record.ending()) {
    std::cout << fmt::format("{} has ended already: {}\n", record.name, ending->reason);
    return kExitComplete;
  }
  launch::make_cluster(record.kind)->stop(record, now);
  std::cout << fmt::format("{} was {}\n", record.name,
                           now ? "ended" : "asked to save and end; `megalith launch status` says when it has");
  return kExitComplete;
}

int remove(const std::string& name) {
  const launch::LaunchRecord record = launch::find_launch(name);
  const std::vector<launch::JobState> states = launch::states_of(record);
  if (launch::is_alive(states))
    user_error("{} is {}: stop it first with `megalith launch stop {}`", record.name,
               launch::state_in_words(record, states), record.name);
  launch::make_cluster(record.kind)->remove(record);
  launch::remove_launch(record);
  std::cout << fmt::format("removed {}; the run in {} stays\n", record.folder.string(), record.run_directory.string());
  return kExitComplete;
}

}  // namespace

void add_launch_list(CLI::App& launch, Action& run) {
  CLI::App* verb = launch.add_subcommand(
      "list", "List launches: those of this user, and those in runs/ here.\n\n  megalith launch list");
  verb->callback([&run] { run = list; });
}

void add_launch_status(CLI::App& launch, Action& run) {
  CLI::App* verb = launch.add_subcommand(
      "status",
      "Say where a launch stands: why it waits and when it may start, step, loss, tokens/s, checkpoint, starts.");
  const auto name = std::make_shared<std::string>();
  add_name(*verb, name);
  verb->callback([name, &run] { run = [name] { return status(*name); }; });
}

void add_launch_logs(CLI::App& launch, Action& run) {
  CLI::App* verb = launch.add_subcommand("logs", "Print the log of a launch, or of one of its ranks.");
  const auto name = std::make_shared<std::string>();
  const auto options = std::make_shared<launch::LogOptions>();
  add_name(*verb, name);
  verb->add_flag("-f,--follow", options->follow, "go on until the launch has ended");
  verb->add_option("--rank", options->rank, "of this rank alone")->check(at_least(0));
  verb->callback([name, options, &run] {
    run = [name, options] {
      const launch::LaunchRecord record = launch::find_launch(*name);
      launch::make_cluster(record.kind)->logs(record, *options);
      return kExitComplete;
    };
  });
}

void add_launch_stop(CLI::App& launch, Action& run) {
  CLI::App* verb = launch.add_subcommand("stop", "Ask a launch to save and end; it does not start again.");
  const auto name = std::make_shared<std::string>();
  const auto now = std::make_shared<bool>(false);
  add_name(*verb, name);
  verb->add_flag("--now", *now, "end it at once, saved or not");
  verb->callback([name, now, &run] { run = [name, now] { return stop(*name, *now); }; });
}

void add_launch_remove(CLI::App& launch, Action& run) {
  CLI::App* verb = launch.add_subcommand("remove", "Forget a launch that has ended; the run itself stays.");
  const auto name = std::make_shared<std::string>();
  add_name(*verb, name);
  verb->callback([name, &run] { run = [name] { return remove(*name); }; });
}

}  // namespace megalith::cli
