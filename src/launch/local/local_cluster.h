#pragma once

#include "launch/cluster.h"

namespace megalith::launch {

// This machine, in the background: a script of its own session. Nothing starts it again.
class LocalCluster : public Cluster {
 public:
  std::string rendered_name() const override { return "job.sh"; }
  std::string render(const Launch& launch) const override;
  std::vector<std::string> problems(const Launch& launch) const override;
  std::vector<std::string> obstacles() const override { return {}; }
  std::string check(const Launch& launch) const override;
  std::vector<std::string> submit(const Launch& launch) const override;
  std::vector<JobState> status(const LaunchRecord& record) const override;
  void logs(const LaunchRecord& record, const LogOptions& options) const override;
  void stop(const LaunchRecord& record, bool now) const override;
};

}  // namespace megalith::launch
