#include "launch/kubernetes/kubernetes_cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "config/environment/variables.h"
#include "config/scalar.h"
#include "core/error.h"
#include "core/file.h"
#include "launch/describe.h"
#include "launch/kubernetes/kubectl.h"
#include "launch/kubernetes/kubernetes_objects.h"
#include "launch/kubernetes/kubernetes_state.h"
#include "launch/kubernetes/kubernetes_values.h"
#include "launch/kubernetes/yaml_writer.h"
#include "launch/log_printer.h"
#include "launch/ranks/secret.h"

namespace megalith::launch {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kJob = "jobs.batch";
constexpr const char* kJobSet = "jobsets.jobset.x-k8s.io";
constexpr const char* kNamespace = " --namespace=";
constexpr const char* kContext = " --context=";
constexpr auto kPause = std::chrono::seconds(2);

// "jobs.batch/gpt3-1 --namespace=team --context=gke": where a launch is, in the words of kubectl.
struct KubernetesJob {
  std::string kind, name;
  Kubectl kubectl;

  static KubernetesJob of(const LaunchRecord& record) {
    if (record.ids.empty()) user_error("{} was not submitted", record.name);
    std::string id = record.ids.front();
    const auto take = [&](const std::string& option) {
      const size_t found = std::min(id.find(option), id.size());
      std::string value = found == id.size() ? "" : id.substr(found + option.size());
      id.resize(found);
      return value;
    };
    const std::string context = take(kContext), name_space = take(kNamespace);
    const size_t slash = id.find('/');
    if (slash == std::string::npos) data_error("{}: '{}' is no job of Kubernetes", record.folder.string(), id);
    return {.kind = id.substr(0, slash), .name = id.substr(slash + 1), .kubectl = Kubectl(name_space, context)};
  }
  std::string id() const {
    const auto option = [](const char* word, const std::string& value) { return value.empty() ? "" : word + value; };
    return fmt::format("{}{}{}", path(), option(kNamespace, kubectl.name_space()), option(kContext, kubectl.context()));
  }
  std::string path() const { return fmt::format("{}/{}", kind, name); }

  Json pods() const {
    return kubectl.get({"pods", fmt::format("--selector={}={}", kInstanceLabel, name)}).value_or(Json::object());
  }
  // Nothing: the cluster does not know it.
  std::optional<KubernetesState> state(const LaunchRecord& record) const {
    const auto job = kubectl.get({path()});
    if (!job) return std::nullopt;
    const Json list = pods();
    if (!record.is_shared) record.note(starts_of(list));
    KubernetesState state = read_kubernetes_state(*job, list);
    if (state.is_suspended) {
      // Without the right to read them, or without Kueue, the reason stays unknown.
      const ToolAnswer workloads = kubectl.ask({"get", "workloads.kueue.x-k8s.io", "--output=json"});
      const Json queued = workloads.good() ? Json::parse(workloads.output, nullptr, false) : Json();
      if (const std::string why = why_not_admitted(queued, name); !why.empty()) state.job.why = why;
    }
    return state;
  }
};

std::string kind_of(const Launch& launch) {
  return launch.profile.text("kubernetes.object") == "jobset" ? kJobSet : kJob;
}

std::string namespace_of(const Profile& profile) {
  return profile.text("kubernetes.namespace");
}

std::string manifests_of(const Launch& launch) {
  std::string text;
  for (const Json& object : kubernetes_objects(kubernetes_values(launch), kubernetes_name(launch)))
    text += "---\n" + to_yaml(object);
  return text;
}

bool makes_secret(const Launch& launch) {
  return launch.work == Work::ranks && launch.profile.text("kubernetes.existing_secret").empty();
}

void delete_objects(const Kubectl& kubectl, const std::vector<std::string>& objects,
                    const std::vector<std::string>& options = {}) {
  std::vector<std::string> words = {"delete", "--ignore-not-found", "--wait=false"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), objects.begin(), objects.end());
  const ToolAnswer answer = kubectl.ask(words);
  if (!answer.good()) fail(ErrorKind::io, "kubectl delete {}: {}", fmt::join(objects, " "), answer.words());
}

// What the cluster says of something that a launch would otherwise wait for, for ever and without a word.
struct Found {
  std::string refusal;  // it is not there
  std::string doubt;    // this user may not see it
};

Found find_queue(const Kubectl& kubectl, const Profile& profile) {
  const std::string queue = profile.text("kubernetes.queue");
  if (queue.empty()) return {};
  const ToolAnswer answer = kubectl.ask({"get", "localqueues.kueue.x-k8s.io/" + queue, "--output=name"});
  if (answer.good()) return {};
  const bool has_kueue = answer.errors.find("doesn't have a resource type") == std::string::npos;
  if (!has_kueue || answer.errors.find("(NotFound)") != std::string::npos)
    return {.refusal =
                fmt::format("the cluster has no local queue '{}' (kubernetes.queue): {}", queue, answer.words())};
  return {.doubt = fmt::format("whether there is a local queue '{}' cannot be seen: {}", queue, answer.words())};
}

Found find_gate_daemon(const Kubectl& kubectl, const Profile& profile) {
  const std::string gate = profile.text("kubernetes.scheduling_gate");
  const std::string daemon = profile.text("kubernetes.gate_daemon");
  if (gate.empty() || daemon.empty()) return {};
  const ToolAnswer answer =
      Kubectl("kube-system", kubectl.context()).ask({"get", "daemonsets.apps,deployments.apps", "--output=json"});
  if (!answer.good())
    return {.doubt = fmt::format("whether {} lifts the gate {} cannot be seen: {}", daemon, gate, answer.words())};
  if (answer.output.find(daemon) != std::string::npos) return {};
  return {.refusal = fmt::format(
              "nothing in kube-system mentions {} (kubernetes.gate_daemon), which lifts the gate {}: the pods would "
              "wait for ever; --set kubernetes.scheduling_gate=null launches without it",
              daemon, gate)};
}

std::vector<Found> find_what_admits(const Profile& profile) {
  const Kubectl kubectl(namespace_of(profile));
  return {find_queue(kubectl, profile), find_gate_daemon(kubectl, profile)};
}

void remember(const LaunchRecord& record, const LaunchRecord::Ending& ending) {
  std::string reason = ending.reason;
  for (char& c : reason) c = c == '\n' ? ' ' : c;
  replace_file(record.file(kEndedName), fmt::format("{} {}\n", ending.code, reason));
}

// The lines of one pod's log, of all its ranks or of one; a pod that is asked again goes on where it was.
class PodLog {
 public:
  PodLog(const KubernetesJob& job, std::string label) : job_(job), label_(std::move(label)) {}

  bool print(const std::string& pod, bool follow) {
    if (pod != pod_) printed_ = 0;
    pod_ = pod;
    size_t seen = 0;
    std::vector<std::string> words = {pod, "--container=megalith"};
    if (follow) words.emplace_back("--follow");
    const ToolAnswer answer = job_.kubectl.log(words, [&](const std::string& line) {
      if (++seen <= printed_) return true;
      printed_ = seen;
      if (label_.empty() || line.starts_with(label_)) std::cout << line << '\n' << std::flush;
      return static_cast<bool>(std::cout);
    });
    // A pod that has not started yet has none; all else lasts.
    if (answer.errors.find("(Forbidden)") != std::string::npos)
      fail(ErrorKind::io, "kubectl logs {}: {}", pod, answer.words());
    return answer.good();
  }

 private:
  const KubernetesJob& job_;
  std::string label_;  // of the lines of one rank: "[3] "
  std::string pod_;
  size_t printed_ = 0;
};

}  // namespace

std::string KubernetesCluster::render(const Launch& launch) const {
  const std::string name = kubernetes_name(launch);
  const std::string where = namespace_of(launch.profile);
  std::string text =
      fmt::format("# kubectl{} create --filename=- --validate=strict\n", where.empty() ? "" : " --namespace=" + where);
  if (makes_secret(launch))
    text += fmt::format("# The Secret {}, with 32 random bytes, is made at the launch and is printed nowhere.\n", name);
  return text + manifests_of(launch);
}

std::vector<std::string> KubernetesCluster::problems(const Launch& launch) const {
  return kubernetes_problems(launch);
}

std::vector<std::string> KubernetesCluster::warnings(const Launch& launch) const {
  return kubernetes_warnings(launch);
}

std::vector<std::string> KubernetesCluster::obstacles() const {
  std::vector<std::string> problems;
  if (!has_tool("kubectl"))
    problems.emplace_back("there is no kubectl here: install it, and let it find the cluster (kubectl get nodes)");
  const config::Lookup environment = config::process_environment;
  if (config::Variables(environment).has("JOB_COMPLETION_INDEX"))
    problems.emplace_back("this is inside of a Job: launch from outside, or unset JOB_COMPLETION_INDEX");
  return problems;
}

std::vector<std::string> KubernetesCluster::refusals(const Launch& launch) const {
  std::vector<std::string> refusals;
  for (const Found& found : find_what_admits(launch.profile)) {
    if (!found.refusal.empty()) refusals.push_back(found.refusal);
  }
  return refusals;
}

std::string KubernetesCluster::check(const Launch& launch) const {
  const std::string answer = Kubectl(namespace_of(launch.profile)).create(manifests_of(launch), {"--dry-run=server"});
  std::string text = fmt::format("the cluster would take it:\n{}", config::trimmed(answer));
  for (const Found& found : find_what_admits(launch.profile)) {
    if (!found.doubt.empty()) text += "\n" + found.doubt;
  }
  return text;
}

std::vector<std::string> KubernetesCluster::submit(const Launch& launch) const {
  const std::string name = kubernetes_name(launch);
  const KubernetesJob job{
      .kind = kind_of(launch), .name = name, .kubectl = Kubectl(namespace_of(launch.profile)).settled()};
  if (makes_secret(launch)) job.kubectl.create(kubernetes_secret(name, new_secret()).dump());
  try {
    job.kubectl.create(read_text(launch.folder / rendered_name()));
  } catch (const Error&) {
    if (makes_secret(launch)) delete_objects(job.kubectl, {"secrets/" + name});
    throw;
  }
  return {job.id()};
}

std::vector<JobState> KubernetesCluster::status(const LaunchRecord& record) const {
  const KubernetesJob job = KubernetesJob::of(record);
  const auto state = job.state(record);
  if (!state && record.stop_asked()) remember(record, {.code = 75, .reason = "stopped on request"});
  if (!state) return {{.id = job.name}};
  if (state->ending) remember(record, *state->ending);
  return {state->job};
}

void KubernetesCluster::logs(const LaunchRecord& record, const LogOptions& options) const {
  const KubernetesJob job = KubernetesJob::of(record);
  const int64_t ranks = record.nodes * record.ranks_per_node;
  if (options.rank >= ranks)
    user_error("{} has {} ranks, counted from 0: there is no rank {}", record.name, ranks, options.rank);
  const int64_t index = std::max<int64_t>(options.rank, 0) / record.ranks_per_node;
  const bool has_labels = options.rank >= 0 && record.ranks_per_node > 1;
  PodLog log(job, has_labels ? fmt::format("[{}] ", options.rank) : "");
  bool is_printed = false;
  for (bool more = true; more;) {
    const std::string pod = newest_pod(job.pods(), index);
    // Asked before the log is read: what comes after the end of the launch is nothing.
    const auto state = options.follow ? job.state(record) : std::nullopt;
    more = state && !state->ending;
    if (!pod.empty() && log.print(pod, more)) is_printed = true;
    if (!std::cout) return;  // nobody reads any more
    if (more) std::this_thread::sleep_for(kPause);
  }
  if (is_printed) return;
  const int64_t rank = std::max<int64_t>(options.rank, 0);
  if (!log_of_rank(record, rank).empty()) return print_log(record, {.rank = rank}, [] { return true; });
  if (const auto now = job.state(record); now && !now->ending) {
    std::cout << fmt::format("{} has printed nothing yet: {}\n", record.name, state_in_words(record, {now->job}));
    return;
  }
  user_error(
      "the cluster has forgotten the pods of {} with their logs; that of each rank is in the run directory, "
      "nemo_log_globalrank-{}_localrank-*.txt",
      record.name, rank);
}

std::string KubernetesCluster::last_words(const LaunchRecord& record) const {
  const KubernetesJob job = KubernetesJob::of(record);
  const std::string pod = newest_pod(job.pods(), 0);
  if (pod.empty()) return "";
  const ToolAnswer answer = job.kubectl.ask({"logs", pod, "--container=megalith", "--tail=1"});
  const std::string text(config::trimmed(answer.output));
  return answer.good() ? text.substr(text.rfind('\n') + 1) : "";
}

void KubernetesCluster::stop(const LaunchRecord& record, bool now) const {
  const KubernetesJob job = KubernetesJob::of(record);
  if (const auto state = job.state(record); state && state->ending) return remember(record, *state->ending);
  replace_file(record.file(kStopName), "");
  // The job stays until its pods have saved and ended, and makes no new ones.
  delete_objects(job.kubectl, {job.path()}, {"--cascade=foreground"});
  if (!now) return;
  delete_objects(job.kubectl, {"pods"},
                 {fmt::format("--selector={}={}", kInstanceLabel, job.name), "--grace-period=1"});
}

void KubernetesCluster::remove(const LaunchRecord& record) const {
  if (record.ids.empty()) return;
  const KubernetesJob job = KubernetesJob::of(record);
  std::vector<std::string> objects = {job.path()};
  std::vector<const char*> kinds = {"networkpolicies.networking.k8s.io", "configmaps", "secrets"};
  if (job.kind == kJob) kinds.push_back("services");  // a JobSet has its own
  for (const char* kind : kinds) objects.push_back(fmt::format("{}/{}", kind, job.name));
  delete_objects(job.kubectl, objects);
}

std::string chart_values(const Launch& launch) {
  return "# Values for charts/megalith, resolved by `megalith launch kubernetes --values`.\n" +
         to_yaml(kubernetes_values(launch));
}

std::string role_manifest(const Profile& profile) {
  return to_yaml(kubernetes_role(profile));
}

std::string make_secret(const Profile& profile, const std::string& name) {
  const Kubectl kubectl = Kubectl(namespace_of(profile)).settled();
  kubectl.create(kubernetes_secret(name, new_secret()).dump());
  return kubectl.name_space();
}

}  // namespace megalith::launch
