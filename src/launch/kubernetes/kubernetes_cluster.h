#pragma once

#include "launch/cluster.h"

namespace megalith::launch {

// Through the user's own kubectl.
class KubernetesCluster : public Cluster {
 public:
  std::string rendered_name() const override { return "manifests.yaml"; }
  std::string render(const Launch& launch) const override;
  std::vector<std::string> problems(const Launch& launch) const override;
  std::vector<std::string> warnings(const Launch& launch) const override;
  std::vector<std::string> obstacles() const override;
  std::vector<std::string> refusals(const Launch& launch) const override;
  std::string check(const Launch& launch) const override;
  std::vector<std::string> submit(const Launch& launch) const override;
  std::vector<JobState> status(const LaunchRecord& record) const override;
  void logs(const LaunchRecord& record, const LogOptions& options) const override;
  std::string last_words(const LaunchRecord& record) const override;
  void stop(const LaunchRecord& record, bool now) const override;
  void remove(const LaunchRecord& record) const override;
};

// The values with which charts/megalith makes the same objects, as YAML.
std::string chart_values(const Launch& launch);
// The Role that suffices on such a cluster, as YAML.
std::string role_manifest(const Profile& profile);
// Makes a Secret with 32 random bytes, for the chart, through kubectl. The namespace it is in, empty: kubectl's own.
std::string make_secret(const Profile& profile, const std::string& name);

}  // namespace megalith::launch
