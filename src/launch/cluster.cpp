#include "launch/cluster.h"

#include "core/error.h"
#include "launch/kubernetes/kubernetes_cluster.h"
#include "launch/local/local_cluster.h"
#include "launch/slurm/slurm_cluster.h"

namespace megalith::launch {

std::unique_ptr<Cluster> make_cluster(const std::string& kind) {
  if (kind == "slurm") return std::make_unique<SlurmCluster>();
  if (kind == "kubernetes") return std::make_unique<KubernetesCluster>();
  if (kind == "local") return std::make_unique<LocalCluster>();
  user_error("launches on {} cannot be handled", kind);
}

}  // namespace megalith::launch
