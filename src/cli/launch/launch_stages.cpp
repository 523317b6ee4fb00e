#include "cli/launch/launch_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "config/suggest.h"
#include "core/error.h"
#include "data/prepare/read/input_list.h"

namespace megalith::cli {

namespace fs = std::filesystem;

namespace {

using launch::Stage;
using launch::Work;

std::vector<std::string> values_of(const LaunchedVerb& verb, const char* option) {
  const auto found = verb.options.find(option);
  return found == verb.options.end() ? std::vector<std::string>{} : found->second;
}

// The verb's own word, with a number where there are several of it.
std::string name_of(const LaunchedVerb& verb, const std::vector<Stage>& before) {
  const auto same =
      std::count_if(before.begin(), before.end(), [&](const Stage& stage) { return stage.verb == verb.verb; });
  return same == 0 ? verb.verb.back() : fmt::format("{}-{}", verb.verb.back(), same + 1);
}

// Without --input and its values, which go on to the next option.
std::vector<std::string> without_input(const std::vector<std::string>& arguments) {
  std::vector<std::string> rest;
  bool is_input = false;
  for (const std::string& word : arguments) {
    if (word.starts_with('-')) is_input = word == "--input" || word.starts_with("--input=");
    if (!is_input) rest.push_back(word);
  }
  return rest;
}

class Stages {
 public:
  Stages(const LaunchOptions& options, const launch::Storage& storage, LaunchDraft& draft)
      : options_(options), storage_(storage), draft_(draft) {}

  void add(const LaunchedVerb& verb) {
    std::vector<Stage>& stages = draft_.launch.stages;
    Stage stage{.name = name_of(verb, stages), .verb = verb.verb, .arguments = verb.arguments};
    if (verb.work == Work::workers) {
      const int64_t nodes = std::max<int64_t>(1, options_.nodes);
      stage.tasks = options_.array > 0 ? options_.array : nodes;
      stage.at_once = std::min(nodes, stage.tasks);
      stage.workers = std::max<int64_t>(1, options_.ranks);
    }
    if (!values_of(verb, "--worker").empty())
      problem("{}: leave --worker out, each task is given its share", stage.name);
    check_files(verb, stage.name);
    if (stages.empty()) settle_inputs(verb, stage);
    for (const std::string& folder : values_of(verb, "--output-dir")) outputs_.emplace_back(folder);
    stages.push_back(std::move(stage));
  }

  // NAME=NODESxWORKERS
  void resize(const std::string& text, const std::vector<LaunchedVerb>& verbs) {
    const size_t equals = std::min(text.find('='), text.size());
    const std::string name = text.substr(0, equals);
    int64_t nodes = 0, workers = 0;
    int used = 0;
    const std::string size = text.substr(std::min(equals + 1, text.size()));
    const int found = std::sscanf(size.c_str(), "%ldx%ld%n", &nodes, &workers, &used);
    if (found != 2 || used != static_cast<int>(size.size()) || nodes < 1 || workers < 1)
      return problem("--stage '{}': write NAME=NODESxWORKERS, for example tokenize=4x32", text);
    if (nodes > kMostProcesses || workers > kMostProcesses)
      return problem("--stage '{}': {} is the most of each", text, kMostProcesses);
    std::vector<std::string> names;
    for (size_t i = 0; i < draft_.launch.stages.size(); ++i) {
      Stage& stage = draft_.launch.stages[i];
      names.push_back(stage.name);
      if (stage.name != name) continue;
      if (verbs[i].work == Work::single && nodes * workers > 1)
        return problem("--stage '{}': `{}` is one process here", text, name);
      stage.tasks = options_.array > 0 && verbs[i].work == Work::workers ? options_.array : nodes;
      stage.at_once = std::min(nodes, stage.tasks);
      stage.workers = workers;
      return;
    }
    const auto near = config::nearest_name(name, names);
    problem("--stage '{}': there is no stage '{}'{}", text, name,
            near ? fmt::format("; did you mean '{}'?", *near) : "");
  }

 private:
  template <class... Values>
  void problem(fmt::format_string<Values...> text, Values&&... values) {
    draft_.problems.push_back(fmt::format(text, std::forward<Values>(values)...));
  }

  bool is_made_before(const fs::path& file) const {
    return std::any_of(outputs_.begin(), outputs_.end(), [&](const fs::path& folder) {
      const fs::path inside = file.lexically_normal().lexically_relative(folder.lexically_normal());
      return !inside.empty() && *inside.begin() != "..";
    });
  }

  void check_files(const LaunchedVerb& verb, const std::string& name) {
    for (const char* option : {"--vocab-file", "--merge-file", "--tokenizer-model", "--input-list"}) {
      for (const std::string& file : values_of(verb, option)) {
        const auto here = storage_.seen_here(file);
        if (is_made_before(file)) continue;
        if (!here) {
          draft_.unchecked.push_back(file);
        } else if (std::error_code error; !fs::is_regular_file(*here, error)) {
          problem("{}: {} {} does not exist", name, option, file);
        }
      }
    }
  }

  // What the patterns of the first stage stand for now is what all of its tasks divide, whatever comes meanwhile.
  void settle_inputs(const LaunchedVerb& verb, Stage& stage) {
    const std::vector<std::string> patterns = values_of(verb, "--input");
    if (patterns.empty() || !verb.takes_list) return;
    std::vector<std::string> here;
    bool same_paths = true;
    for (const std::string& pattern : patterns) {
      const auto seen = storage_.seen_here(pattern);
      if (!seen) {
        draft_.unchecked.push_back(pattern);
        return;
      }
      same_paths = same_paths && *seen == (draft_.launch.work_directory / pattern).lexically_normal();
      here.push_back(seen->string());
    }
    try {
      const std::vector<data::InputFile> files =
          data::list_inputs(same_paths ? patterns : here, verb.work == Work::workers);
      if (same_paths) freeze(files, stage);
    } catch (const Error& error) {
      if (exit_code(error.kind()) != exit_code(ErrorKind::user)) throw;
      problem("{}: {}", stage.name, error.what());
    }
  }

  void freeze(const std::vector<data::InputFile>& files, Stage& stage) {
    launch::LaunchFile list{.name = stage.name + ".inputs", .text = ""};
    if (storage_.seen_here(draft_.launch.folder_in_job) != draft_.launch.folder) return;  // tasks could not read it
    for (const data::InputFile& file : files) {
      const std::string name = file.path.string();
      if (name.find('\n') != std::string::npos || name.ends_with('\r'))
        user_error("a list of inputs cannot hold '{}', which has a line end in its name", name);
      list.text += name + "\n";
    }
    stage.arguments = without_input(stage.arguments);
    stage.arguments.insert(stage.arguments.begin(), {"--input-list", draft_.launch.folder_in_job + "/" + list.name});
    draft_.launch.files.push_back(std::move(list));
  }

  const LaunchOptions& options_;
  const launch::Storage& storage_;
  LaunchDraft& draft_;
  std::vector<fs::path> outputs_;  // folders that the stages so far write
};

}  // namespace

bool are_stages(const std::vector<LaunchedVerb>& verbs, const std::string& kind) {
  const bool are_data = std::all_of(verbs.begin(), verbs.end(), [](const LaunchedVerb& verb) {
    return verb.verb.front() == "data" && verb.work != Work::ranks;
  });
  if (verbs.size() > 1 && !(are_data && kind == "slurm"))
    user_error("several verbs in one launch are stages of data, on Slurm: launch others one by one, with --after NAME");
  return kind == "slurm" && are_data && (verbs.size() > 1 || verbs.front().work == Work::workers);
}

void draft_stages(const std::vector<LaunchedVerb>& verbs, const LaunchOptions& options, const launch::Storage& storage,
                  LaunchDraft& draft) {
  launch::Launch& launch = draft.launch;
  launch.work = Work::workers;
  Stages stages(options, storage, draft);
  for (const LaunchedVerb& verb : verbs) stages.add(verb);
  for (const std::string& size : options.stages) stages.resize(size, verbs);
  launch.nodes = 1;
  launch.ranks_per_node = 1;
  for (const Stage& stage : launch.stages) {
    launch.nodes = std::max(launch.nodes, stage.at_once);
    launch.ranks_per_node = std::max(launch.ranks_per_node, stage.workers);
  }
  launch.verb = {"data"};
  launch.arguments.assign(options.command.begin() + 1, options.command.end());
  if (options.chain > 1)
    draft.problems.emplace_back("--chain is for training: stages of data go on by launching them again");
}

}  // namespace megalith::cli
