#include "launch/folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config/environment/variables.h"
#include "config/scalar.h"
#include "config/suggest.h"
#include "core/error.h"
#include "core/file.h"
#include "core/process/file_lock.h"
#include "core/run_folders.h"
#include "launch/ranks/secret.h"

namespace megalith::launch {

namespace fs = std::filesystem;

namespace {

constexpr const char* kRecordName = "launch.json";
constexpr const char* kBeforeName = "before";

std::string to_json(const LaunchRecord& record) {
  nlohmann::ordered_json json = {
      {"name", record.name},          {"kind", record.kind},   {"cluster", record.cluster},
      {"command", record.command},    {"nodes", record.nodes}, {"ranks_per_node", record.ranks_per_node},
      {"number", record.number},      {"ids", record.ids},     {"run_directory", record.run_directory.string()},
      {"is_shared", record.is_shared}};
  for (const LaunchRecord::Stage& stage : record.stages)
    json["stages"].push_back({{"name", stage.name}, {"tasks", stage.tasks}});
  return json.dump(2) + "\n";
}

bool holds_launch(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / kRecordName, error);
}

// One link per name to the folder of its newest launch, so that a launch can be found from anywhere.
fs::path links_folder(const config::Lookup& environment) {
  const config::Variables variables(environment);
  if (const auto state = variables.text("XDG_STATE_HOME")) return fs::path(*state) / "megalith" / "launches";
  if (const auto home = variables.text("HOME")) return fs::path(*home) / ".local" / "state" / "megalith" / "launches";
  return {};
}

void link_to(const LaunchRecord& record, const fs::path& links) {
  if (links.empty()) return;
  make_directory(links);
  const fs::path fresh = links / ("." + record.name);
  std::error_code error;
  fs::remove(fresh, error);
  fs::create_symlink(record.folder, fresh);
  fs::rename(fresh, links / record.name);
}

void move_to_before(const fs::path& folder, int64_t number) {
  const fs::path before = folder / kBeforeName / std::to_string(number);
  make_directory(before);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path name = entry.path().filename();
    if (name != kBeforeName && name != kLockName) fs::rename(entry.path(), before / name);
  }
}

void read_journal(const fs::path& file, std::vector<JournalLine>& lines) {
  if (std::error_code error; !fs::exists(file, error)) return;
  std::istringstream text(read_text(file));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    JournalLine parsed;
    std::string what;
    if (!(words >> parsed.time >> what >> parsed.generation >> parsed.job)) continue;  // torn
    parsed.starts = what == "start";
    if (!parsed.starts && !(words >> parsed.code)) continue;
    std::getline(words >> std::ws, parsed.detail);
    lines.push_back(std::move(parsed));
  }
}

void add_launches_of_run(const fs::path& run, std::map<fs::path, LaunchRecord>& found) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run / kLaunchFolder, error)) {
    if (holds_launch(entry.path())) found.emplace(fs::weakly_canonical(entry.path()), read_record(entry.path()));
  }
}

}  // namespace

std::optional<LaunchRecord::Ending> LaunchRecord::ending() const {
  std::error_code error;
  if (!fs::exists(file(kEndedName), error)) return std::nullopt;
  const std::string text(config::trimmed(read_text(file(kEndedName))));
  const size_t space = std::min(text.find(' '), text.size());
  return Ending{.code = config::read_int(text.substr(0, space)).value_or(1),
                .reason = text.substr(std::min(space + 1, text.size()))};
}

int64_t LaunchRecord::tasks_done(const std::string& stage) const {
  std::error_code error;
  int64_t done = 0;
  for (const auto& entry : fs::directory_iterator(file(kTasksName), error)) {
    const std::string mark = entry.path().filename().string();
    done += mark.starts_with(stage + ".") && mark.ends_with(".done") ? 1 : 0;
  }
  return done;
}

std::vector<JournalLine> LaunchRecord::journal() const {
  std::vector<JournalLine> lines;
  read_journal(file(kJournalName), lines);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(file(kTasksName), error)) {
    if (entry.path().extension() == ".journal") read_journal(entry.path(), lines);
  }
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
  return lines;
}

void LaunchRecord::note(const std::vector<JournalLine>& lines) const {
  std::vector<JournalLine> known = journal();
  std::string text;
  for (JournalLine line : lines) {
    const auto is_of_job = [&](const JournalLine& other) { return other.job == line.job; };
    const auto same = [&](const JournalLine& other) { return is_of_job(other) && other.starts == line.starts; };
    if (std::any_of(known.begin(), known.end(), same)) continue;
    const auto start = std::find_if(known.begin(), known.end(), is_of_job);
    const auto is_start = [](const JournalLine& other) { return other.starts; };
    line.generation = start != known.end() ? start->generation : std::count_if(known.begin(), known.end(), is_start);
    text += line.starts
                ? fmt::format("{} start {} {} {}\n", line.time, line.generation, line.job, line.detail)
                : fmt::format("{} end {} {} {} {}\n", line.time, line.generation, line.job, line.code, line.detail);
    known.push_back(std::move(line));
  }
  if (!text.empty()) File::open_for_appending(file(kJournalName)).write(text);
}

File claim_folder(const Launch& launch) {
  make_directory(launch.folder);
  File file = File::open_for_appending(launch.folder / kLockName);
  if (try_lock(file) == LockResult::busy || launches_in(launch.folder) + 1 != launch.number) {
    user_error(
        "{} is being launched by another process: `megalith launch status {}` shows it, or give this one another "
        "--name",
        launch.name, launch.name);
  }
  return file;
}

LaunchRecord begin_folder(const Launch& launch, const std::string& rendered_name, const std::string& rendered) {
  const fs::path& folder = launch.folder;
  make_directory(folder);
  if (holds_launch(folder)) move_to_before(folder, read_record(folder).number);
  LaunchRecord record{.name = launch.name,
                      .kind = launch.profile.text("kind"),
                      .cluster = launch.profile.name(),
                      .command = launch.verb,
                      .nodes = launch.nodes,
                      .ranks_per_node = launch.ranks_per_node,
                      .number = launch.number,
                      .ids = {},
                      .run_directory = launch.run_directory,
                      .is_shared = launch.job_sees_folder,
                      .folder = folder};
  for (const Stage& stage : launch.stages) record.stages.push_back({.name = stage.name, .tasks = stage.tasks});
  if (!launch.stages.empty()) make_directory(folder / kTasksName);
  record.command.insert(record.command.end(), launch.arguments.begin(), launch.arguments.end());
  // On Kubernetes it is an object of the cluster, and no file.
  if (launch.work == Work::ranks && record.kind != "kubernetes") write_secret_file(folder / kSecretName);
  for (const LaunchFile& file : launch.files) replace_file(folder / file.name, file.text);
  replace_file(folder / "profile.yaml", launch.profile.to_yaml());
  replace_file(folder / rendered_name, rendered);
  replace_file(folder / kRecordName, to_json(record));
  return record;
}

void finish_folder(LaunchRecord& record, const std::vector<std::string>& ids, const config::Lookup& environment) {
  record.ids = ids;
  replace_file(record.folder / kRecordName, to_json(record));
  link_to(record, links_folder(environment));
}

LaunchRecord read_record(const fs::path& folder) {
  const fs::path file = folder / kRecordName;
  try {
    const auto json = nlohmann::json::parse(read_text(file));
    std::vector<LaunchRecord::Stage> stages;
    for (const auto& stage : json.value("stages", nlohmann::json::array()))
      stages.push_back({.name = stage.at("name"), .tasks = stage.at("tasks")});
    return {.name = json.at("name"),
            .kind = json.at("kind"),
            .cluster = json.at("cluster"),
            .command = json.at("command"),
            .nodes = json.at("nodes"),
            .ranks_per_node = json.at("ranks_per_node"),
            .number = json.at("number"),
            .ids = json.at("ids"),
            .run_directory = json.at("run_directory").get<std::string>(),
            .is_shared = json.value("is_shared", true),
            .stages = std::move(stages),
            .folder = folder};
  } catch (const nlohmann::json::exception& problem) {
    data_error("{} is not the record of a launch: {}", file.string(), problem.what());
  }
}

int64_t launches_in(const fs::path& folder) {
  return holds_launch(folder) ? read_record(folder).number : 0;
}

std::vector<LaunchRecord> all_launches(const config::Lookup& environment) {
  std::map<fs::path, LaunchRecord> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("runs", error)) add_launches_of_run(entry.path(), found);
  if (const fs::path links = links_folder(environment); !links.empty()) {
    for (const auto& entry : fs::directory_iterator(links, error)) {
      const fs::path folder = fs::weakly_canonical(entry.path(), error);
      if (holds_launch(folder)) found.emplace(folder, read_record(folder));
    }
  }
  std::vector<LaunchRecord> records;
  for (auto& [path, record] : found) records.push_back(std::move(record));
  std::stable_sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return records;
}

LaunchRecord find_launch(const std::string& name, const config::Lookup& environment) {
  if (holds_launch(name)) return read_record(name);
  std::map<fs::path, LaunchRecord> of_run;
  add_launches_of_run(name, of_run);
  std::vector<LaunchRecord> found;
  for (auto& [path, record] : of_run) found.push_back(std::move(record));
  std::vector<std::string> names;
  if (found.empty()) {
    for (LaunchRecord& record : all_launches(environment)) {
      names.push_back(record.name);
      if (record.name == name) found.push_back(std::move(record));
    }
  }
  if (found.size() == 1) return found.front();
  if (found.size() > 1) {
    std::vector<std::string> folders;
    for (const LaunchRecord& record : found) folders.push_back(record.folder.string());
    user_error("'{}' stands for {} launches: give the folder of one, {}", name, found.size(),
               fmt::join(folders, " or "));
  }
  const auto nearest = config::nearest_name(name, names);
  user_error("there is no launch '{}'{}", name,
             nearest ? fmt::format("; did you mean '{}'?", *nearest) : "; `megalith launch list` shows all");
}

void remove_launch(const LaunchRecord& record, const config::Lookup& environment) {
  const fs::path links = links_folder(environment);
  std::error_code error;
  const fs::path link = links.empty() ? fs::path() : links / record.name;
  const bool is_ours = !link.empty() && fs::equivalent(link, record.folder, error);
  if (is_ours) fs::remove(link);
  fs::remove_all(record.folder);
  fs::remove(record.folder.parent_path(), error);  // only where it is empty
}

}  // namespace megalith::launch
