#include "launch/kubernetes/kubernetes_objects.h"

#include <fmt/format.h>

#include "launch/kubernetes/kubernetes_values.h"

namespace megalith::launch {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kReplicatedJob = "workload";

class Objects {
 public:
  Objects(const Json& values, const std::string& name) : values_(values), name_(name) {}

  std::vector<Json> make() const {
    std::vector<Json> objects = {config_map()};
    if (!is_jobset()) objects.push_back(service());
    if (values_["networkPolicy"].get<bool>()) objects.push_back(network_policy());
    objects.push_back(is_jobset() ? jobset() : job());
    return objects;
  }

 private:
  bool is_jobset() const { return values_["object"] == "jobset"; }
  std::string text(const char* key) const { return values_[key].get<std::string>(); }
  int64_t number(const char* key) const { return values_[key].get<int64_t>(); }

  Json labels() const { return {{"app.kubernetes.io/name", "megalith"}, {kInstanceLabel, name_}}; }
  Json own_pods() const { return {{kInstanceLabel, name_}}; }

  Json object(const char* version, const char* kind) const {
    return {{"apiVersion", version}, {"kind", kind}, {"metadata", {{"name", name_}, {"labels", labels()}}}};
  }

  Json config_map() const {
    Json object = this->object("v1", "ConfigMap");
    object["data"] = values_["files"];
    return object;
  }

  // Ranks look for the first one before it is ready.
  Json service() const {
    Json object = this->object("v1", "Service");
    object["spec"] = {{"clusterIP", "None"}, {"publishNotReadyAddresses", true}, {"selector", own_pods()}};
    return object;
  }

  Json network_policy() const {
    Json object = this->object("networking.k8s.io/v1", "NetworkPolicy");
    const Json pods = {{"podSelector", {{"matchLabels", own_pods()}}}};
    object["spec"] = pods;
    object["spec"]["policyTypes"] = {"Ingress"};
    object["spec"]["ingress"] = Json::array({{{"from", Json::array({pods})}}});
    return object;
  }

  // What a queue lets in begins suspended.
  void add_queue(Json& object) const {
    const std::string queue = text("queue");
    if (queue.empty()) return;
    object["spec"]["suspend"] = true;
    Json& labels = object["metadata"]["labels"];
    labels["kueue.x-k8s.io/queue-name"] = queue;
    if (const std::string priority = text("priorityClass"); !priority.empty())
      labels["kueue.x-k8s.io/priority-class"] = priority;
    if (const int64_t seconds = number("maxRunSeconds"); seconds > 0)
      labels["kueue.x-k8s.io/max-exec-time-seconds"] = std::to_string(seconds);
  }

  Json job() const {
    Json object = this->object("batch/v1", "Job");
    add_queue(object);
    object["spec"].update(job_spec());
    return object;
  }

  Json jobset() const {
    Json object = this->object("jobset.x-k8s.io/v1alpha2", "JobSet");
    add_queue(object);
    const Json template_of_job = {{"spec", job_spec()}};
    const Json spec = {
        {"network", {{"enableDNSHostnames", true}, {"subdomain", name_}, {"publishNotReadyAddresses", true}}},
        {"ttlSecondsAfterFinished", number("ttlSeconds")},
        {"failurePolicy", {{"maxRestarts", number("maxRestarts")}, {"rules", set_rules()}}},
        {"replicatedJobs", Json::array({{{"name", kReplicatedJob}, {"replicas", 1}, {"template", template_of_job}}})}};
    object["spec"].update(spec);
    return object;
  }

  // A failure that the rules of the Job (job_rules()) do not know counts toward maxRestarts.
  static Json set_rules() {
    const Json by_policy = {"PodFailurePolicy"};
    return Json::array(
        {{{"name", "mistake"},
          {"action", "FailJobSet"},
          {"onJobFailureReasons", by_policy},
          {"onJobFailureMessagePatterns", {"exit code (2|70) "}}},
         {{"name", "saved"}, {"action", "RestartJobSetAndIgnoreMaxRestarts"}, {"onJobFailureReasons", by_policy}}});
  }

  // 2 and 70 end the Job; 75 and evictions are not counted: the pod is made again, in a JobSet with all others.
  Json job_rules() const {
    const char* const again = is_jobset() ? "FailJob" : "Ignore";
    const auto on_codes = [](std::vector<int> codes) {
      return Json{{"containerName", "megalith"}, {"operator", "In"}, {"values", std::move(codes)}};
    };
    const Json disrupted = Json::array({{{"type", "DisruptionTarget"}, {"status", "True"}}});
    return Json::array({{{"action", "FailJob"}, {"onExitCodes", on_codes({2, 70})}},
                        {{"action", again}, {"onExitCodes", on_codes({75})}},
                        {{"action", again}, {"onPodConditions", disrupted}}});
  }

  Json job_spec() const {
    const int64_t nodes = number("nodes");
    Json spec = {{"completionMode", "Indexed"}, {"completions", nodes}, {"parallelism", nodes}};
    // Every pod of a start that fails counts.
    spec["backoffLimit"] = is_jobset() ? 0 : number("maxRestarts") * nodes;
    if (!is_jobset()) spec["ttlSecondsAfterFinished"] = number("ttlSeconds");
    spec["podFailurePolicy"] = {{"rules", job_rules()}};
    Json metadata = {{"labels", labels()}, {"annotations", values_["podAnnotations"]}};
    metadata["labels"].update(values_["podLabels"]);
    spec["template"] = {{"metadata", metadata}, {"spec", pod()}};
    return spec;
  }

  Json pod() const {
    Json pod = values_["pod"];
    if (!is_jobset()) pod["subdomain"] = name_;
    Json volumes = Json::array({{{"name", "megalith"}, {"configMap", {{"name", name_}}}}});
    if (needs_secret()) volumes.push_back({{"name", "megalith-secret"}, {"secret", secret()}});
    for (const Json& volume : values_["pod"]["volumes"]) volumes.push_back(volume);
    pod["volumes"] = volumes;
    pod["containers"] = Json::array({container()});
    return pod;
  }

  bool needs_secret() const { return values_["needsSecret"].get<bool>(); }

  Json secret() const {
    constexpr int kOwnerReads = 0400;  // and the pods' group, by fsGroup
    const std::string existing = text("existingSecret");
    return {{"secretName", existing.empty() ? name_ : existing}, {"defaultMode", kOwnerReads}};
  }

  Json container() const {
    Json container = values_["container"];
    for (const Json& variable : variables()) container["env"].push_back(variable);
    Json mounts = Json::array({{{"name", "megalith"}, {"mountPath", "/etc/megalith"}, {"readOnly", true}}});
    if (needs_secret())
      mounts.push_back({{"name", "megalith-secret"}, {"mountPath", "/etc/megalith-secret"}, {"readOnly", true}});
    for (const Json& mount : values_["container"]["volumeMounts"]) mounts.push_back(mount);
    container["volumeMounts"] = mounts;
    return container;
  }

  // Where the ranks meet. JOB_COMPLETION_INDEX, which pod this is, comes from the Job itself.
  Json variables() const {
    const std::string host = is_jobset() ? fmt::format("{}-{}-0-0", name_, kReplicatedJob) : name_ + "-0";
    Json variables = Json::array({{{"name", "NNODES"}, {"value", std::to_string(number("nodes"))}},
                                  {{"name", "MASTER_ADDR"}, {"value", fmt::format("{}.{}", host, name_)}},
                                  {{"name", "MASTER_PORT"}, {"value", std::to_string(number("port"))}}});
    if (is_jobset()) {
      const Json attempt = {{"fieldPath", "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"}};
      variables.push_back({{"name", "MEGALITH_GENERATION"}, {"valueFrom", {{"fieldRef", attempt}}}});
    }
    return variables;
  }

  const Json& values_;
  const std::string& name_;
};

Json rule(const char* group, const std::vector<const char*>& resources, const std::vector<const char*>& verbs) {
  return {{"apiGroups", {group}}, {"resources", resources}, {"verbs", verbs}};
}

}  // namespace

std::vector<Json> kubernetes_objects(const Json& values, const std::string& name) {
  return Objects(values, name).make();
}

Json kubernetes_secret(const std::string& name, const std::string& secret) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", {{"name", name}, {"labels", {{"app.kubernetes.io/name", "megalith"}, {kInstanceLabel, name}}}}},
          {"type", "Opaque"},
          {"immutable", true},
          {"stringData", {{"secret", secret}}}};
}

Json kubernetes_role(const Profile& profile) {
  const bool is_jobset = profile.text("kubernetes.object") == "jobset";
  std::vector<const char*> made = {"configmaps", "secrets"};
  if (!is_jobset) made.push_back("services");
  Json rules = Json::array({rule("", made, {"create", "delete"}), rule("", {"pods"}, {"get", "list", "delete"}),
                            rule("", {"pods/log"}, {"get"}),
                            rule("networking.k8s.io", {"networkpolicies"}, {"create", "delete"})});
  rules.push_back(is_jobset ? rule("jobset.x-k8s.io", {"jobsets"}, {"create", "get", "delete"})
                            : rule("batch", {"jobs"}, {"create", "get", "delete"}));
  if (!profile.text("kubernetes.queue").empty()) {
    rules.push_back(rule("kueue.x-k8s.io", {"localqueues"}, {"get"}));
    rules.push_back(rule("kueue.x-k8s.io", {"workloads"}, {"list"}));
  }
  return {{"apiVersion", "rbac.authorization.k8s.io/v1"},
          {"kind", "Role"},
          {"metadata", {{"name", "megalith-launch"}}},
          {"rules", rules}};
}

}  // namespace megalith::launch
