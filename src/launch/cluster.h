#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launch/folder.h"
#include "launch/launch.h"

namespace megalith::launch {

// What a cluster says of one job.
struct JobState {
  enum class Phase { waiting, running, ended, forgotten };
  std::string id;
  Phase phase = Phase::forgotten;
  std::string word{};       // the cluster's own: PENDING, NODE_FAIL, ...
  std::string why{};        // it waits; empty: it does not, or nobody said
  std::string may_start{};  // at the earliest, as the cluster guesses; empty: unknown
  std::string nodes{};
};

struct LogOptions {
  bool follow = false;  // until the launch has ended
  int64_t rank = -1;    // -1: what the job itself printed
};

// A way to start a launch and to follow it. What a launch left in its folder is all that the later calls know of it.
class Cluster {
 public:
  virtual ~Cluster() = default;

  // The file of the folder that holds what is submitted.
  virtual std::string rendered_name() const = 0;
  // Exactly what submit() hands over: the same launch gives the same bytes.
  virtual std::string render(const Launch& launch) const = 0;
  // Why the cluster could not run it, as far as can be seen without asking.
  virtual std::vector<std::string> problems(const Launch& launch) const = 0;
  // What the user should know though it can run.
  virtual std::vector<std::string> warnings(const Launch&) const { return {}; }
  // Why this machine cannot submit anything: tools that are missing.
  virtual std::vector<std::string> obstacles() const = 0;
  // Why the cluster itself would not take it, as far as it says without being given the job.
  virtual std::vector<std::string> refusals(const Launch&) const { return {}; }
  // What the cluster answers when it is asked whether this could run. User error where it could not.
  virtual std::string check(const Launch& launch) const = 0;
  // The ids of the jobs. The folder is complete but for them.
  virtual std::vector<std::string> submit(const Launch& launch) const = 0;

  // One for each id, in their order. Io error where the cluster does not answer.
  virtual std::vector<JobState> status(const LaunchRecord& record) const = 0;
  // Prints the log to standard output.
  virtual void logs(const LaunchRecord& record, const LogOptions& options) const = 0;
  // The last line that it printed, where that is all that can be seen of the run; empty: nothing.
  virtual std::string last_words(const LaunchRecord&) const { return ""; }
  // Asks it to save and end, and not to start again; `now`: ends it at once, saved or not.
  virtual void stop(const LaunchRecord& record, bool now) const = 0;
  // Takes away what a launch that has ended left in the cluster.
  virtual void remove(const LaunchRecord&) const {}
};

// Of the kind that a profile has: slurm, kubernetes or local.
std::unique_ptr<Cluster> make_cluster(const std::string& kind);

}  // namespace megalith::launch
