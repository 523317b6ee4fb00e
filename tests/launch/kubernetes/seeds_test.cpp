// The renderings of docs/launch.md for Google's recipes against what Google's own charts make.

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "config/yaml_tree.h"
#include "core/file.h"
#include "golden_data.h"
#include "launch/profiles/profile.h"
#include "repository.h"

namespace megalith::launch {
namespace {

using config::YamlTree;
using nlohmann::json;
using Names = std::set<std::string>;

std::string text_in(const YamlTree& tree, const char* path) {
  const YamlTree* found = find_in(tree, path);
  return found == nullptr ? "" : found->text;
}

// The Job or JobSet of a rendering.
YamlTree workload_of(const std::string& name) {
  const std::string text = read_text(in_repository("tests/launch/golden/" + name));
  const size_t last = text.rfind("\n---\n");
  return config::read_yaml_tree(text.substr(last + 5), name);
}

// The template of its pods.
const YamlTree& pods_of(const YamlTree& workload) {
  const YamlTree* sets = find_in(workload, "spec.replicatedJobs");
  return *(sets == nullptr ? find_in(workload, "spec.template")
                           : find_in(sets->items.front(), "template.spec.template"));
}

const YamlTree& container_of(const YamlTree& pods) {
  return find_in(pods, "spec.containers")->items.front();
}

const json& seed_workload(const json& seeds, const std::string& number) {
  for (const auto& [title, objects] : seeds.items()) {
    if (title.find("seed " + number) != 0) continue;
    for (const json& object : objects) {
      if (object["kind"] == "Job" || object["kind"] == "JobSet") return object;
    }
  }
  throw std::runtime_error("no such seed");
}

// What a volume is, whatever its name.
std::string source_of(const YamlTree& volume) {
  for (const char* path : {"hostPath.path", "persistentVolumeClaim.claimName"}) {
    if (const std::string text = text_in(volume, path); !text.empty()) return text;
  }
  if (find_in(volume, "csi") != nullptr) return "bucket";
  if (find_in(volume, "configMap") != nullptr) return "configMap";
  const std::string size = text_in(volume, "emptyDir.sizeLimit");
  return size.empty() ? "emptyDir" : size;
}

std::string source_of(const std::string& name, const json& volume) {
  if (name == "cloud-samples-data") return name;
  if (volume.contains("hostPath")) return volume["hostPath"]["path"];
  if (volume.contains("persistentVolumeClaim")) return volume["persistentVolumeClaim"]["claimName"];
  if (volume.contains("csi")) return "bucket";
  if (volume.contains("configMap")) return "configMap";
  if (name == "workload-terminated-volume") return name;
  return volume["emptyDir"].value("sizeLimit", "emptyDir");
}

// Each is a line of docs/launch.md.
const Names kLeftOut = {"JOB_IDENTIFIER",
                        "JOB_TIMESTAMP",
                        "JOB_UUID",
                        "JOB_ORCHESTRATOR",
                        "SSD_MOUNT_PATH",
                        "GCS_FUSE_BUCKET",
                        "TORCH_DISTRIBUTED_TARGET",
                        "TORCH_DISTRIBUTED_TRACING",
                        "WORLD_SIZE",
                        "GPUS_PER_NODE",
                        "NVTE_FWD_LAYERNORM_SM_MARGIN",
                        "NVTE_BWD_LAYERNORM_SM_MARGIN",
                        "JOB_COMPLETION_INDEX",
                        "REPLICATED_JOB_NAME",
                        "JOBSET_NAME",
                        "NCCL_INIT_SCRIPT",
                        "NEMO_CONFIG_PATH",
                        "NEMO_CONFIG_NAME",
                        "LOG_DIR_PREFIX",
                        "LOCAL_CKPT_DIR_PREFIX",
                        "PERSISTENT_CKPT_DIR_PREFIX",
                        "FT_PARAM_INITIAL_RANK_HEARTBEAT_TIMEOUT",
                        "FT_PARAM_RANK_HEARTBEAT_TIMEOUT",
                        "HOST_DAEMON_PORT",
                        "MAX_IN_JOB_RESTARTS",
                        "WORKLOAD_NAMESPACE",
                        "MAX_WORKLOAD_RESTARTS",
                        "ENABLE_WORKLOAD_SCALING",
                        "MAX_NUM_DP_REPLICAS",
                        "MIN_NUM_DP_REPLICAS",
                        "NUM_NODES_PER_DP",
                        "CONTAINER_TERMINATION_THRESHOLD_S",
                        "WORKLOAD_DOWNTIME_THRESHOLD_S",
                        "/run/tcpx",
                        "workload-terminated-volume",
                        "cloud-samples-data"};

class Seed : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    MEGALITH_GOLDEN_OR_SKIP(golden);
    const json seeds = json::parse(read_text(golden / "k8s/seed-objects.json"));
    theirs_ = seed_workload(seeds, GetParam());
    ours_ = workload_of(std::string("kubernetes-seed-") + GetParam() + ".yaml");
  }

  const json& their_container() const {
    const json& containers = theirs_["template"]["containers"];
    return containers.contains("megatron") ? containers["megatron"] : containers["workload"];
  }

  json theirs_;
  YamlTree ours_;
};

TEST_P(Seed, HasEveryVariable) {
  std::map<std::string, std::string> ours;
  for (const YamlTree& variable : find_in(container_of(pods_of(ours_)), "env")->items)
    ours[text_in(variable, "name")] = text_in(variable, "value");
  const Names of_the_launch = {"MASTER_ADDR"};
  for (const auto& [name, value] : their_container()["env"].items()) {
    EXPECT_NE(ours.contains(name), kLeftOut.contains(name)) << name << " must be there, or be left out for a reason";
    if (!ours.contains(name) || of_the_launch.contains(name)) continue;
    EXPECT_EQ(ours[name], value.get<std::string>()) << name;
  }
}

TEST_P(Seed, HasEveryVolume) {
  std::multiset<std::string> ours;
  for (const YamlTree& volume : find_in(pods_of(ours_), "spec.volumes")->items) ours.insert(source_of(volume));
  for (const auto& [name, volume] : theirs_["template"]["volumes"].items()) {
    const std::string source = source_of(name, volume);
    EXPECT_NE(ours.contains(source), kLeftOut.contains(source)) << name << ", " << source;
  }
}

TEST_P(Seed, HasEveryAnnotationAndToleration) {
  const YamlTree& pods = pods_of(ours_);
  std::map<std::string, std::string> annotations;
  for (const auto& [name, value] : find_in(pods, "metadata.annotations")->members) annotations[name] = value.text;
  for (const auto& [name, value] : theirs_["template"]["annotations"].items()) {
    ASSERT_TRUE(annotations.contains(name)) << name;
    if (name == "kubectl.kubernetes.io/default-container") continue;  // theirs has another name
    EXPECT_EQ(annotations[name], value.get<std::string>()) << name;
  }
  Names tolerations;
  for (const YamlTree& toleration : find_in(pods, "spec.tolerations")->items)
    tolerations.insert(text_in(toleration, "operator") + " " + text_in(toleration, "key"));
  for (const json& toleration : theirs_["template"]["pod"]["tolerations"])
    EXPECT_TRUE(
        tolerations.contains(toleration["operator"].get<std::string>() + " " + toleration["key"].get<std::string>()));
}

TEST_P(Seed, HasItsSizeAndPlacement) {
  const bool is_set = theirs_["kind"] == "JobSet";
  const YamlTree* sets = find_in(ours_, "spec.replicatedJobs");
  ASSERT_EQ(is_set, sets != nullptr);
  const YamlTree& job = is_set ? *find_in(sets->items.front(), "template") : ours_;
  const json& wanted = is_set ? theirs_["replicatedJob"]["spec"] : theirs_["spec"];
  for (const char* key : {"parallelism", "completions"})
    EXPECT_EQ(text_in(job, (std::string("spec.") + key).c_str()), std::to_string(wanted[key].get<int>()));
  EXPECT_EQ(text_in(job, "spec.completionMode"), "Indexed");
  const json& gates = theirs_["template"]["pod"].value("schedulingGates", json::array());
  const YamlTree* own_gates = find_in(pods_of(ours_), "spec.schedulingGates");
  ASSERT_EQ(gates.empty(), own_gates == nullptr);
  if (!gates.empty()) {
    EXPECT_EQ(text_in(own_gates->items.front(), "name"), gates[0]["name"].get<std::string>());
  }
  if (!is_set) return;
  EXPECT_EQ(text_in(ours_, "spec.failurePolicy.maxRestarts"), "20");
  EXPECT_EQ(text_in(ours_, "spec.suspend"), "true");
}

INSTANTIATE_TEST_SUITE_P(Google, Seed, ::testing::Values("000", "003"));

}  // namespace
}  // namespace megalith::launch
