#include "launch/profiles/profile_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/suggest.h"

namespace megalith::launch {

const std::vector<ProfileKey>& profile_keys() {
  using T = ProfileType;
  static const std::vector<ProfileKey> kKeys = {
      {"kind", T::choice, "", "what manages the cluster", "slurm|kubernetes|local"},
      {"program", T::text, "", "megalith on the nodes; empty: this program by its path, in an image `megalith`"},
      {"wrapper", T::texts, "[]", "words before the program: a profiler, for example {nsys,profile,-t,cuda}"},
      {"gpus_per_node", T::number, "0", "0: the ranks compute on CPUs"},
      {"save_margin", T::duration, "5m", "how long before the time limit training stops and saves"},
      {"numa", T::flag, "false", "binds each rank to the cores and the memory of its GPU's socket"},
      {"image", T::text, "", "container image; on Slurm a file or an address that pyxis takes"},
      {"environment", T::map, "{}", "variables of every rank"},
      {"source", T::texts, "[]", "shell files that are read before the program starts, on every node"},
      {"mounts", T::maps, "[]", "what the program sees of the cluster's storage"},
      {"mounts[].name", T::text, "", "of the volume, on Kubernetes"},
      {"mounts[].source", T::text, "", "a path of the node"},
      {"mounts[].claim", T::text, "", "a PersistentVolumeClaim"},
      {"mounts[].bucket", T::text, "", "a bucket, through GKE's gcsfuse"},
      {"mounts[].mount_options", T::text, "", "of the bucket"},
      {"mounts[].target", T::text, "", "where the program sees it"},
      {"mounts[].read_only", T::flag, "false", "the program cannot write there"},
      {"mounts[].seen_at", T::text, "", "where this machine sees it; empty: at `source`, if at all"},

      {"slurm.partition", T::text, "", "empty: the cluster's own choice, here and below"},
      {"slurm.account", T::text, "", "who pays"},
      {"slurm.qos", T::text, "", "quality of service"},
      {"slurm.reservation", T::text, "", "reserved nodes to use"},
      {"slurm.constraint", T::text, "", "features that nodes must have"},
      {"slurm.time", T::text, "", "time limit of one job: 90, 90:00, 1:30:00, 1-12 or 1-12:30:00"},
      {"slurm.exclusive", T::flag, "true", "whole nodes"},
      {"slurm.memory", T::text, "0", "memory of each node; 0: all of it"},
      {"slurm.gpus", T::choice, "gpus", "how GPUs are asked for: --gpus-per-node, --gres, or not", "gpus|gres|none"},
      {"slurm.tasks", T::choice, "node", "one task per node, which starts the ranks, or one per GPU", "node|gpu"},
      {"slurm.cpus_per_task", T::number, "0", "0: the cluster's own choice"},
      {"slurm.switches", T::text, "", "leaf switches at most, and how long to wait for them: 1@2:00:00"},
      {"slurm.segment", T::number, "0", "nodes of a block that belong together (GB200); 0: none"},
      {"slurm.requeue", T::flag, "true", "a job that was stopped early, or lost a node, goes back to the queue"},
      {"slurm.singleton", T::flag, "false", "jobs of one name run one after another"},
      {"slurm.wait", T::number, "60", "seconds for the other tasks to end after the first, before they are killed"},
      {"slurm.mpi", T::text, "", "srun --mpi; Megalith needs none"},
      {"slurm.container_writable", T::flag, "true", "pyxis: the image can be written to"},
      {"slurm.container_mount_home", T::flag, "false", "pyxis: the image sees the user's home"},
      {"slurm.sbatch", T::texts, "[]", "more options of sbatch, whole: --comment=x"},
      {"slurm.srun", T::texts, "[]", "more options of srun, whole"},

      {"kubernetes.object", T::choice, "job", "an Indexed Job, or a JobSet", "job|jobset"},
      {"kubernetes.namespace", T::text, "", "empty: that of kubectl's context"},
      {"kubernetes.queue", T::text, "", "Kueue's local queue; empty: none"},
      {"kubernetes.priority_class", T::text, "", "of Kueue"},
      {"kubernetes.topology.required", T::text, "", "node label within which all pods must be (Kueue)"},
      {"kubernetes.topology.preferred", T::text, "", "node label within which pods should be (Kueue)"},
      {"kubernetes.topology.unconstrained", T::flag, "false", "Kueue may place pods anywhere"},
      {"kubernetes.topology.slice", T::text, "", "node label within which slices of slice_size pods must be"},
      {"kubernetes.topology.slice_size", T::number, "0", "pods of a slice"},
      {"kubernetes.scheduling_gate", T::text, "", "that a daemon of the cluster lifts"},
      {"kubernetes.gate_daemon", T::text, "",
       "its name, for --check to look for in kube-system; empty: not looked for"},
      {"kubernetes.max_run_seconds", T::number, "0", "Kueue's limit of the run; 0: none"},
      {"kubernetes.max_restarts", T::number, "3", "restarts after failures that say nothing of progress"},
      {"kubernetes.ttl_seconds", T::number, "43200", "how long the cluster keeps a job that has ended"},
      {"kubernetes.grace_seconds", T::number, "600", "from SIGTERM to SIGKILL: must exceed a step and a save"},
      {"kubernetes.port", T::number, "6002", "MASTER_PORT"},
      {"kubernetes.host_network", T::flag, "false", "pods use the network of their node: no NetworkPolicy holds there"},
      {"kubernetes.host_network_reason", T::text, "", "required with host_network"},
      {"kubernetes.interfaces", T::maps, "[]", "network interfaces of a pod (GKE), where it has a network of its own"},
      {"kubernetes.interfaces[].name", T::text, "", "eth1"},
      {"kubernetes.interfaces[].network", T::text, "", "the Network object"},
      {"kubernetes.annotations", T::map, "{}", "of the pods"},
      {"kubernetes.labels", T::map, "{}", "of the pods"},
      {"kubernetes.node_selector", T::map, "{}", "labels that nodes must have"},
      {"kubernetes.nodes", T::texts, "[]", "names of the only nodes to use"},
      {"kubernetes.tolerations", T::tree, "[]", "as Kubernetes knows them"},
      {"kubernetes.resources", T::map, "{}", "limits beside the GPUs"},
      {"kubernetes.shared_memory", T::text, "64Gi", "size of /dev/shm"},
      {"kubernetes.capabilities", T::texts, "[]", "of the program's container, for example IPC_LOCK"},
      {"kubernetes.privileged", T::flag, "false", "the program's container"},
      {"kubernetes.privilege_reasons", T::map, "{}", "why, by container: required where one has more rights"},
      {"kubernetes.user", T::number, "1000", "user and fsGroup of the pods"},
      {"kubernetes.existing_secret", T::text, "", "a Secret with the key `secret`; empty: one is made for the launch"},
      {"kubernetes.volumes", T::tree, "[]", "as Kubernetes knows them, for the containers below"},
      {"kubernetes.volume_mounts", T::tree, "[]", "of those, in the program's container"},
      {"kubernetes.init_containers", T::tree, "[]", "as Kubernetes knows them; side cars have restartPolicy Always"},
  };
  return kKeys;
}

const ProfileKey* find_profile_key(std::string_view path) {
  for (const ProfileKey& key : profile_keys()) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

std::string type_name(const ProfileKey& key) {
  switch (key.type) {
    case ProfileType::text:
      return "a text";
    case ProfileType::choice: {
      std::string names(key.choices);
      std::replace(names.begin(), names.end(), '|', '/');
      return "one of " + names;
    }
    case ProfileType::number:
      return "a whole number, 0 or more";
    case ProfileType::flag:
      return "true or false";
    case ProfileType::duration:
      return "a time such as 600, 10m or 2h";
    case ProfileType::texts:
      return "a list of texts";
    case ProfileType::map:
      return "names and texts";
    case ProfileType::maps:
      return "a list of maps";
    case ProfileType::tree:
      return "a list";
  }
  return "";
}

std::optional<std::string> nearest_profile_key(std::string_view path) {
  std::vector<std::string> names;
  for (const ProfileKey& key : profile_keys()) names.emplace_back(key.path);
  if (const auto near = config::nearest_name(path, names)) return near;
  // The name is what people remember; they forget the section.
  const auto last_word = [](std::string_view name) { return std::string(name.substr(name.find_last_of('.') + 1)); };
  std::vector<std::string> words;
  for (const std::string& name : names) words.push_back(last_word(name));
  const auto word = config::nearest_name(last_word(path), words);
  if (!word) return std::nullopt;
  return names[static_cast<size_t>(std::find(words.begin(), words.end(), *word) - words.begin())];
}

}  // namespace megalith::launch
