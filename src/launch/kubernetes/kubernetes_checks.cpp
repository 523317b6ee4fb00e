#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "config/scalar.h"
#include "launch/kubernetes/kubernetes_values.h"

namespace megalith::launch {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongestPod = 63;         // a pod's host name is one word of DNS
constexpr size_t kLettersOfPod = 6;        // -x7k2p, which Kubernetes adds
constexpr size_t kMostBytes = 1000 << 10;  // of a ConfigMap, whose limit counts names as well
constexpr int64_t kMaxPort = 65535;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

bool is_label(const std::string& name) {
  return !name.empty() && name.size() <= kLongestPod && std::all_of(name.begin(), name.end(), is_plain) &&
         name.front() != '-' && name.back() != '-';
}

class Checks {
 public:
  explicit Checks(const Launch& launch)
      : profile_(launch.profile), launch_(launch), values_(kubernetes_values(launch)) {}

  std::vector<std::string> problems() && {
    check_image();
    check_name();
    check_words();
    check_topology();
    check_mounts();
    check_privileges();
    check_files();
    const int64_t port = profile_.number("kubernetes.port");
    if (port < 1 || port > kMaxPort) add("`kubernetes.port` is {}: expected 1 to {}", port, kMaxPort);
    return std::move(found_);
  }

  std::vector<std::string> warnings() && {
    warn_of_tag("megalith", profile_.text("image"));
    if (values_["pod"].contains("initContainers")) {
      for (const Json& container : values_["pod"]["initContainers"])
        if (container["image"] != profile_.text("image")) warn_of_tag(container["name"], container["image"]);
    }
    if (profile_.flag("kubernetes.host_network"))
      add("the pods use the network of their nodes, where no NetworkPolicy holds (kubernetes.host_network)");
    if (!profile_.text("kubernetes.queue").empty()) return std::move(found_);
    for (const char* key : {"topology.required", "topology.preferred", "topology.slice", "priority_class"}) {
      const std::string path = fmt::format("kubernetes.{}", key);
      if (!profile_.text(path).empty()) add("`{}` is Kueue's, and has no effect without `kubernetes.queue`", path);
    }
    if (profile_.number("kubernetes.max_run_seconds") > 0)
      add("`kubernetes.max_run_seconds` is Kueue's, and has no effect without `kubernetes.queue`");
    return std::move(found_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    found_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void check_image() {
    if (profile_.text("image").empty())
      add("the profile {} has no `image`: give one that holds megalith and bash (Containerfile), for example --set "
          "image=REGISTRY/megalith@sha256:...",
          profile_.name());
    if (profile_.number("kubernetes.user") == 0)
      add("`kubernetes.user` is 0: the program does not run as root; give another number");
    if (profile_.flag("kubernetes.host_network") && profile_.text("kubernetes.host_network_reason").empty())
      add("`kubernetes.host_network` needs `kubernetes.host_network_reason`: no NetworkPolicy holds there, and ports "
          "are those of the node");
  }

  void check_name() {
    const std::string name = kubernetes_name(launch_);
    const char* const of_set = profile_.text("kubernetes.object") == "jobset" ? "-workload-0" : "";
    const std::string pod = fmt::format("{}{}-{}", name, of_set, values_["nodes"].get<int64_t>() - 1);
    if (pod.size() + kLettersOfPod > kLongestPod)
      add("the pods of {} would be called {}-xxxxx, which has {} characters where a host name takes {}: give a shorter "
          "--name",
          launch_.name, pod, pod.size() + kLettersOfPod, kLongestPod);
    if (!is_label(name)) add("'{}' cannot be the name of a Job: give another --name", name);
  }

  void check_words() {
    const auto check = [&](const std::string& text) {
      if (!config::is_utf8(text)) add("'{}' is not UTF-8 text, which a manifest cannot carry", text);
    };
    for (const std::string& word : launch_.arguments) check(word);
    for (const LaunchFile& file : launch_.files) check(file.text);
    for (const auto& [name, value] : profile_.map("environment")) check(value);
  }

  void check_topology() {
    std::string given;
    for (const char* key : {"required", "preferred"}) {
      if (!profile_.text(fmt::format("kubernetes.topology.{}", key)).empty())
        given += fmt::format("{}`kubernetes.topology.{}`", given.empty() ? "" : " and ", key);
    }
    if (profile_.flag("kubernetes.topology.unconstrained"))
      given += fmt::format("{}`kubernetes.topology.unconstrained`", given.empty() ? "" : " and ");
    if (given.find(" and ") != std::string::npos)
      add("{} are both given: Kueue takes one of them; take the other away with --set KEY=null", given);
    if (profile_.text("kubernetes.topology.slice").empty() != (profile_.number("kubernetes.topology.slice_size") == 0))
      add("`kubernetes.topology.slice` and `kubernetes.topology.slice_size` belong together");
  }

  void check_mounts() {
    std::set<std::string> names = {"megalith", "megalith-secret"};
    for (const Json& volume : values_["pod"]["volumes"]) {
      const std::string name = volume.value("name", "");
      if (!is_label(name)) add("'{}' is no name of a volume: lower-case letters, digits and '-'", name);
      if (!names.insert(name).second) add("two volumes are called '{}'", name);
    }
    for (const Mount& mount : profile_.mounts()) {
      const int sources = !mount.source.empty() + !mount.claim.empty() + !mount.bucket.empty();
      if (sources != 1)
        add("the mount of '{}' needs one of `source` (a path of the node), `claim` and `bucket`, and has {}",
            mount.target, sources);
      if (!mount.target.starts_with('/')) add("the mount target '{}' is no absolute path", mount.target);
      if (!mount.mount_options.empty() && mount.bucket.empty())
        add("the mount of '{}' has `mount_options`, which only a bucket takes", mount.target);
    }
  }

  // The rights that a container has beyond those of a restricted one.
  static std::string rights_of(const Json& context) {
    std::string rights;
    const auto have = [&](const std::string& right) { rights += (rights.empty() ? "" : ", ") + right; };
    if (context.value("privileged", false)) have("privileged");
    if (context.value("allowPrivilegeEscalation", false)) have("allowPrivilegeEscalation");
    if (context.value("runAsUser", 1) == 0 || !context.value("runAsNonRoot", true)) have("root");
    const Json added = context.value("capabilities", Json::object()).value("add", Json::array());
    for (const Json& capability : added) have(capability.get<std::string>());
    return rights;
  }

  void check_privileges() {
    const auto check = [&](const Json& container) {
      const std::string name = container["name"];
      const std::string rights = rights_of(container["securityContext"]);
      const Profile::Map reasons = profile_.map("kubernetes.privilege_reasons");
      const bool has_reason = std::any_of(reasons.begin(), reasons.end(), [&](const auto& reason) {
        return reason.first == name && !reason.second.empty();
      });
      if (!rights.empty() && !has_reason)
        add("the container {} has more rights than it needs by default ({}): say why with "
            "`kubernetes.privilege_reasons.{}`",
            name, rights, name);
    };
    check(values_["container"]);
    if (!values_["pod"].contains("initContainers")) return;
    for (const Json& container : values_["pod"]["initContainers"]) check(container);
  }

  void check_files() {
    size_t bytes = 0;
    for (const auto& [name, text] : values_["files"].items())
      bytes += name.size() + text.get_ref<const std::string&>().size();
    if (bytes > kMostBytes)
      add("the recipes have {} bytes, more than the {} that a ConfigMap holds", bytes, kMostBytes);
  }

  void warn_of_tag(const std::string& container, const std::string& image) {
    if (image.find("@sha256:") == std::string::npos)
      add("the image of {}, {}, is named by a tag, which may stand for another image tomorrow: name it by its digest "
          "(@sha256:...)",
          container, image);
  }

  const Profile& profile_;
  const Launch& launch_;
  Json values_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> kubernetes_problems(const Launch& launch) {
  return Checks(launch).problems();
}

std::vector<std::string> kubernetes_warnings(const Launch& launch) {
  return Checks(launch).warnings();
}

}  // namespace megalith::launch
