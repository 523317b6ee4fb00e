#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "launch/profiles/profile.h"

namespace megalith::launch {

// How the processes of a verb share its work.
enum class Work {
  ranks,    // they meet and compute together: --nproc
  workers,  // each does a share, by its number alone
  single,   // there is one
};

struct LaunchFile {
  std::string name;
  std::string text;
};

// One of several verbs that a launch runs one after another: tasks of one node each, which divide its work.
struct Stage {
  std::string name;  // extract
  std::vector<std::string> verb;
  std::vector<std::string> arguments;
  int64_t tasks = 1;
  int64_t at_once = 1;  // of them
  int64_t workers = 1;  // processes of each
};

// What is to run, where and under which name: all that a cluster needs to render and submit it. Paths are absolute. The
// program may see storage under other names than this machine does (Profile::mounts): fields that say `in_job` hold
// what the program sees, the others what this machine and the nodes themselves see.
struct Launch {
  std::string name;
  std::vector<std::string> verb;       // {"data", "tokenize"}
  std::vector<std::string> arguments;  // as the job gives them to the verb, but for those of its ranks
  Profile profile;
  Work work = Work::ranks;
  std::vector<Stage> stages{};  // each starts when the one before has ended well; then the words above are for people
  int64_t nodes = 1;
  int64_t ranks_per_node = 1;  // or workers

  std::filesystem::path run_directory;
  std::filesystem::path folder;  // of this launch: RUN/launch/NAME
  std::string folder_in_job;
  bool job_sees_folder = true;
  std::filesystem::path work_directory;
  std::vector<LaunchFile> files;    // recipes, to be put into the folder
  std::filesystem::path tracker{};  // tells the newest checkpoint (checkpoint/file_names.h); empty: the verb saves none

  bool saves = false;                // a stop signal makes it save
  int64_t time_limit = 0;            // seconds of one job; 0: the cluster's own
  int64_t max_time = 0;              // seconds that the recipe itself allows one start; 0: no limit
  int64_t patience = 0;              // seconds after which ranks that were cut off from the others have ended
  int64_t chain = 1;                 // jobs submitted at once, each going on where the one before stopped
  int64_t number = 1;                // of the launches of this name in this run directory
  std::vector<std::string> after{};  // ids of the jobs that must have ended well
};

constexpr const char* kSecretName = "secret";
constexpr const char* kLogName = "log.txt";
constexpr const char* kJournalName = "journal";
constexpr const char* kEndedName = "ended";
constexpr const char* kStopName = "stop";
constexpr const char* kLockName = "lock";
// Of a launch with stages: a folder with extract.3.log, extract.3.journal and, when it is, extract.3.done of each task.
constexpr const char* kTasksName = "tasks";

// The command of one process per node, which starts the ranks of its node, or of one per rank or worker.
std::vector<std::string> command_per_node(const Launch& launch);
std::vector<std::string> command_per_rank(const Launch& launch);
std::vector<std::string> command_of(const Launch& launch, const Stage& stage);

// Of every process: the profile's, and where the store's secret is.
Profile::Map environment_of(const Launch& launch, const std::string& secret_file);
// Where the processes see the secret that is in the launch's folder.
std::string secret_in_folder(const Launch& launch);

// User error for a name that a job, a label or a folder cannot have.
void check_name(const std::string& name);

}  // namespace megalith::launch
