#pragma once

#include "launch/cluster.h"

namespace megalith::launch {

// Through the user's own sbatch, squeue, scancel and, where the cluster keeps accounts, sacct.
class SlurmCluster : public Cluster {
 public:
  std::string rendered_name() const override { return "job.sh"; }
  std::string render(const Launch& launch) const override;
  std::vector<std::string> problems(const Launch& launch) const override;
  std::vector<std::string> obstacles() const override;
  std::vector<std::string> refusals(const Launch& launch) const override;
  std::string check(const Launch& launch) const override;
  std::vector<std::string> submit(const Launch& launch) const override;
  std::vector<JobState> status(const LaunchRecord& record) const override;
  void logs(const LaunchRecord& record, const LogOptions& options) const override;
  void stop(const LaunchRecord& record, bool now) const override;

 private:
  std::vector<std::string> submit_stages(const Launch& launch) const;
};

// What `squeue --format=%T|%r|%S|%N`, or `sacct --parsable2 --format=State,NodeList` says of a job: a line, of an array
// several.
JobState parse_squeue(const std::string& id, const std::string& lines);
JobState parse_sacct(const std::string& id, const std::string& lines);

}  // namespace megalith::launch
