#include "cli/launch/launch_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "cli/command_line.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "launch/ranks/self.h"

namespace megalith::cli {

namespace {

const CLI::App* chosen_of(const CLI::App& program, std::vector<std::string>& verb) {
  const CLI::App* app = &program;
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().back();
    verb.push_back(app->get_name());
  }
  return app;
}

launch::Work work_of(const CLI::App& verb) {
  if (verb.get_option_no_throw("--nproc") != nullptr) return launch::Work::ranks;
  if (verb.get_option_no_throw("--worker") == nullptr) return launch::Work::single;
  // `data tokenize` makes one output, or one for each input.
  const CLI::Option* folder = verb.get_option_no_throw("--output-dir");
  return folder != nullptr && folder->count() == 0 ? launch::Work::single : launch::Work::workers;
}

std::shared_ptr<TrainOptions> train_options_of(std::vector<std::string> arguments) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App app;
  add_train_options(app, options);
  std::reverse(arguments.begin(), arguments.end());  // as the library wants them
  app.parse(arguments);
  return options;
}

}  // namespace

LaunchedVerb understand_verb(const std::vector<std::string>& words) {
  if (words.empty())
    user_error("nothing to launch: give a verb after --, for example megalith launch slurm -- train -c RECIPE");
  if (words.front() == "launch") user_error("a launch cannot launch another: give the verb itself after --");
  CLI::App program("", "megalith");
  program.require_subcommand(1);
  Action action;
  add_verbs(program, action);
  std::vector<std::string> all = {"megalith"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : all) pointers.push_back(word.data());
  if (const auto code = parse_command_line(program, static_cast<int>(pointers.size()), pointers.data())) {
    if (*code == kExitComplete) user_error("--help is for this machine, not for a cluster");
    user_error("`{}` needs one of its verbs after it, as listed above", fmt::join(words, " "));
  }
  LaunchedVerb found;
  const CLI::App* verb = chosen_of(program, found.verb);
  found.work = work_of(*verb);
  found.arguments.assign(words.begin() + std::ssize(found.verb), words.end());
  if (found.work == launch::Work::ranks && verb->get_option("--nproc")->count() > 0)
    found.nproc = verb->get_option("--nproc")->as<int64_t>();
  for (const CLI::Option* option : verb->get_options()) {
    if (option->count() > 0) found.options.emplace(option->get_name(), option->results());
  }
  found.takes_list = verb->get_option_no_throw("--input-list") != nullptr;
  if (found.verb.front() == "train") found.train = train_options_of(found.arguments);
  return found;
}

std::vector<std::vector<std::string>> split_verbs(const std::vector<std::string>& words) {
  std::vector<std::vector<std::string>> verbs(1);
  for (const std::string& word : words) {
    if (word == "--") {
      verbs.emplace_back();
    } else {
      verbs.back().push_back(word);
    }
  }
  return verbs;
}

std::vector<std::string> with_files(const std::vector<std::string>& arguments, const std::vector<std::string>& files) {
  std::vector<std::string> replaced;
  size_t next = 0;
  const std::vector<std::string> rest = launch::without_nproc(arguments);
  for (size_t i = 0; i < rest.size(); ++i) {
    const std::string& word = rest[i];
    const bool names_next = word == "-c" || word == "--config";
    const bool names_itself = word.starts_with("--config=") || (word.starts_with("-c") && !names_next);
    if (!names_next && !names_itself) {
      replaced.push_back(word);
      continue;
    }
    MEGALITH_CHECK(next < files.size(), "fewer recipes than -c options");
    replaced.emplace_back("-c");
    replaced.push_back(files[next++]);
    if (names_next) ++i;
  }
  return replaced;
}

}  // namespace megalith::cli
