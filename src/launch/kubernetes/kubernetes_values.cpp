#include "launch/kubernetes/kubernetes_values.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config/scalar.h"
#include "launch/bash_quote.h"
#include "launch/kubernetes/pod_script.h"

namespace megalith::launch {

namespace {

using config::YamlTree;
using Json = nlohmann::ordered_json;

constexpr const char* kContainer = "megalith";

// A plain word is what YAML takes it for; a quoted one is a text.
Json json_of(const YamlTree& tree) {
  switch (tree.kind) {
    case YamlTree::Kind::null:
      return nullptr;
    case YamlTree::Kind::scalar: {
      if (tree.quoted) return tree.text;
      if (tree.text == "true" || tree.text == "false") return tree.text == "true";
      const bool is_whole = tree.text.find_first_not_of("-0123456789") == std::string::npos;
      const auto number = is_whole ? config::read_int(tree.text) : std::nullopt;
      return number ? Json(*number) : Json(tree.text);
    }
    case YamlTree::Kind::list: {
      Json list = Json::array();
      for (const YamlTree& item : tree.items) list.push_back(json_of(item));
      return list;
    }
    case YamlTree::Kind::map: {
      Json map = Json::object();
      for (const auto& [name, value] : tree.members) map[name] = json_of(value);
      return map;
    }
  }
  return nullptr;
}

// Kubernetes replaces $(NAME) in arguments and variables; two dollars stand for one.
std::string without_references(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '$' ? "$$" : std::string(1, c);
  return escaped;
}

Json map_of(const Profile::Map& map) {
  Json json = Json::object();
  for (const auto& [name, value] : map) json[name] = value;
  return json;
}

class Values {
 public:
  explicit Values(const Launch& launch) : launch_(launch), profile_(launch.profile) {}

  Json make() const {
    Json values = {{"object", text("object")},
                   {"nodes", launch_.nodes},
                   {"queue", text("queue")},
                   {"priorityClass", text("priority_class")},
                   {"maxRunSeconds", number("max_run_seconds")},
                   {"maxRestarts", number("max_restarts")},
                   {"ttlSeconds", number("ttl_seconds")},
                   {"port", number("port")},
                   {"networkPolicy", !flag("host_network")},
                   {"needsSecret", launch_.work == Work::ranks},
                   {"existingSecret", text("existing_secret")}};
    values["podLabels"] = map_of(map("labels"));
    values["podAnnotations"] = annotations();
    values["pod"] = pod();
    values["container"] = container();
    values["files"] = files();
    return values;
  }

 private:
  static std::string path(const char* key) { return fmt::format("kubernetes.{}", key); }
  std::string text(const char* key) const { return profile_.text(path(key)); }
  int64_t number(const char* key) const { return profile_.number(path(key)); }
  bool flag(const char* key) const { return profile_.flag(path(key)); }
  Profile::Map map(const char* key) const { return profile_.map(path(key)); }
  Json tree(const char* key) const { return json_of(profile_.tree(path(key))); }

  bool uses_buckets() const {
    for (const Mount& mount : profile_.mounts()) {
      if (!mount.bucket.empty()) return true;
    }
    return false;
  }

  Json annotations() const {
    Json annotations = {{"kubectl.kubernetes.io/default-container", kContainer}};
    if (uses_buckets()) {
      annotations["gke-gcsfuse/volumes"] = "true";
      for (const char* resource : {"cpu", "memory", "ephemeral-storage"})
        annotations[fmt::format("gke-gcsfuse/{}-limit", resource)] = "0";
    }
    add_interfaces(annotations);
    if (!text("queue").empty()) add_topology(annotations);
    for (const auto& [name, value] : map("annotations")) annotations[name] = value;
    return annotations;
  }

  void add_interfaces(Json& annotations) const {
    const Json interfaces = tree("interfaces");
    if (interfaces.empty() || flag("host_network")) return;
    std::string lines;
    for (const Json& each : interfaces) {
      const Json line = {{"interfaceName", each.value("name", "")}, {"network", each.value("network", "")}};
      lines += fmt::format("{}{}", lines.empty() ? "" : ",\n ", line.dump());
    }
    annotations["networking.gke.io/default-interface"] = interfaces.front().value("name", "");
    annotations["networking.gke.io/interfaces"] = fmt::format("[{}]\n", lines);
  }

  void add_topology(Json& annotations) const {
    const auto add = [&](const char* key, const char* name) {
      if (const std::string label = text(key); !label.empty())
        annotations[fmt::format("kueue.x-k8s.io/podset-{}", name)] = label;
    };
    add("topology.required", "required-topology");
    add("topology.preferred", "preferred-topology");
    add("topology.slice", "slice-required-topology");
    if (const int64_t size = number("topology.slice_size"); size > 0)
      annotations["kueue.x-k8s.io/podset-slice-size"] = std::to_string(size);
    if (flag("topology.unconstrained")) annotations["kueue.x-k8s.io/podset-unconstrained-topology"] = "true";
  }

  Json pod() const {
    Json pod = {{"restartPolicy", "Never"}, {"automountServiceAccountToken", false}, {"enableServiceLinks", false}};
    pod["terminationGracePeriodSeconds"] = number("grace_seconds");
    if (flag("host_network")) {
      pod["hostNetwork"] = true;
      pod["dnsPolicy"] = "ClusterFirstWithHostNet";
    }
    const int64_t user = number("user");
    pod["securityContext"] = {{"runAsNonRoot", true},
                              {"runAsUser", user},
                              {"runAsGroup", user},
                              {"fsGroup", user},
                              {"fsGroupChangePolicy", "OnRootMismatch"},
                              {"seccompProfile", {{"type", "RuntimeDefault"}}}};
    if (const std::string gate = text("scheduling_gate"); !gate.empty())
      pod["schedulingGates"] = Json::array({{{"name", gate}}});
    if (const Json selector = map_of(map("node_selector")); !selector.empty()) pod["nodeSelector"] = selector;
    if (const auto nodes = profile_.texts("kubernetes.nodes"); !nodes.empty()) pod["affinity"] = affinity(nodes);
    if (const Json tolerations = tree("tolerations"); !tolerations.empty()) pod["tolerations"] = tolerations;
    if (const Json containers = init_containers(); !containers.empty()) pod["initContainers"] = containers;
    pod["volumes"] = volumes();
    return pod;
  }

  static Json affinity(const std::vector<std::string>& nodes) {
    const Json here = {{"key", "kubernetes.io/hostname"}, {"operator", "In"}, {"values", nodes}};
    const Json terms = Json::array({{{"matchExpressions", Json::array({here})}}});
    return {{"nodeAffinity", {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", terms}}}}}};
  }

  // What a container does not say itself holds for it as for the program's.
  static Json restricted(const Json& own) {
    Json context = {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", {"ALL"}}}}};
    if (own.value("privileged", false)) context.erase("allowPrivilegeEscalation");
    for (const auto& [name, value] : own.items()) context[name] = value;
    return context;
  }

  // Those of the profile; one without an image uses the program's.
  Json init_containers() const {
    Json containers = Json::array();
    for (const Json& given : tree("init_containers")) {
      Json container = {{"name", given.value("name", "")}, {"image", given.value("image", profile_.text("image"))}};
      container.update(given);
      container["securityContext"] = restricted(given.value("securityContext", Json::object()));
      containers.push_back(std::move(container));
    }
    return containers;
  }

  std::string volume_name(const Mount& mount, size_t index) const {
    return mount.name.empty() ? fmt::format("mount-{}", index) : mount.name;
  }

  Json source_of(const Mount& mount) const {
    if (!mount.claim.empty()) return {{"persistentVolumeClaim", {{"claimName", mount.claim}}}};
    if (mount.bucket.empty()) return {{"hostPath", {{"path", mount.source}}}};
    // A bucket has no owners: its files are those of the pods' user.
    const int64_t user = number("user");
    const std::string owner = fmt::format("uid={},gid={}", user, user);
    const bool says_owner = mount.mount_options.find("uid=") != std::string::npos;
    const std::string options = mount.mount_options.empty() ? owner
                                : says_owner                ? mount.mount_options
                                                            : mount.mount_options + "," + owner;
    return {{"csi",
             {{"driver", "gcsfuse.csi.storage.gke.io"},
              {"volumeAttributes", {{"bucketName", mount.bucket}, {"mountOptions", options}}}}}};
  }

  Json volumes() const {
    Json volumes = Json::array();
    const std::vector<Mount> mounts = profile_.mounts();
    for (size_t i = 0; i < mounts.size(); ++i) {
      Json volume = {{"name", volume_name(mounts[i], i)}};
      volume.update(source_of(mounts[i]));
      volumes.push_back(std::move(volume));
    }
    for (const Json& volume : tree("volumes")) volumes.push_back(volume);
    volumes.push_back(
        {{"name", "shared-memory"}, {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", text("shared_memory")}}}});
    return volumes;
  }

  Json volume_mounts() const {
    Json list = Json::array();
    const std::vector<Mount> mounts = profile_.mounts();
    for (size_t i = 0; i < mounts.size(); ++i) {
      Json mount = {{"name", volume_name(mounts[i], i)}, {"mountPath", mounts[i].target}};
      if (mounts[i].read_only) mount["readOnly"] = true;
      list.push_back(std::move(mount));
    }
    for (const Json& mount : tree("volume_mounts")) list.push_back(mount);
    list.push_back({{"name", "shared-memory"}, {"mountPath", "/dev/shm"}});
    return list;
  }

  Json container() const {
    Json container = {{"name", kContainer}, {"image", profile_.text("image")}};
    container["command"] = {"bash", fmt::format("{}/{}", kFilesInPod, kPodScriptName)};
    Json arguments = Json::array();
    for (const std::string& word : command_per_node(launch_)) arguments.push_back(without_references(word));
    container["args"] = arguments;
    Json variables = Json::array();
    for (const auto& [name, value] : environment_of(launch_, kSecretInPod))
      variables.push_back({{"name", name}, {"value", without_references(value)}});
    variables.push_back({{"name", "NODE_NAME"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "spec.nodeName"}}}}}});
    container["env"] = variables;
    Json limits = Json::object();
    const int64_t gpus = profile_.number("gpus_per_node");
    if (gpus > 0 && launch_.work != Work::workers) limits["nvidia.com/gpu"] = gpus;
    for (const auto& [name, value] : map("resources")) limits[name] = value;
    if (!limits.empty()) container["resources"] = {{"limits", limits}};
    container["securityContext"] = own_context();
    container["volumeMounts"] = volume_mounts();
    return container;
  }

  Json own_context() const {
    Json own = Json::object();
    if (flag("privileged")) own["privileged"] = true;
    if (const auto more = profile_.texts("kubernetes.capabilities"); !more.empty())
      own["capabilities"] = {{"drop", {"ALL"}}, {"add", more}};
    return restricted(own);
  }

  Json files() const {
    Json files = {{kPodScriptName, pod_script(launch_)}};
    for (const LaunchFile& file : launch_.files) files[file.name] = file.text;
    return files;
  }

  const Launch& launch_;
  const Profile& profile_;
};

}  // namespace

Json kubernetes_values(const Launch& launch) {
  return Values(launch).make();
}

std::string kubernetes_name(const Launch& launch) {
  std::string name;
  for (const char c : config::lower_case(launch.name)) name += c == '_' || c == '.' ? '-' : c;
  const bool is_digit = name[0] >= '0' && name[0] <= '9';
  return fmt::format("{}{}-{}", is_digit ? "m-" : "", name, launch.number);
}

}  // namespace megalith::launch
