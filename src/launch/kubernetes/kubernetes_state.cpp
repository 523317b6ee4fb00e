#include "launch/kubernetes/kubernetes_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "config/scalar.h"
#include "core/process/exit_codes.h"

namespace megalith::launch {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kIndex = "batch.kubernetes.io/job-completion-index";
constexpr const char* kCreated = "/metadata/creationTimestamp";
constexpr int64_t kTogetherSeconds = 60;  // between the ends of pods that failed for one reason
constexpr size_t kShownNodes = 4;
constexpr int64_t kTerminated = 143;  // by SIGTERM

const Json& at(const Json& object, const char* pointer) {
  static const Json nothing;
  const Json::json_pointer path(pointer);
  return object.is_object() && object.contains(path) ? object.at(path) : nothing;
}

std::string text_at(const Json& object, const char* pointer) {
  const Json& value = at(object, pointer);
  return value.is_string() ? value.get<std::string>() : "";
}

int64_t number_at(const Json& object, const char* pointer) {
  const Json& value = at(object, pointer);
  return value.is_number_integer() ? value.get<int64_t>() : 0;
}

// A condition of this type that holds, or (`holds` false) does not; null where there is none.
const Json* condition_of(const Json& object, const char* type, bool holds = true) {
  const Json& conditions = at(object, "/status/conditions");
  if (!conditions.is_array()) return nullptr;
  for (const Json& condition : conditions) {
    if (text_at(condition, "/type") == type && text_at(condition, "/status") == (holds ? "True" : "False"))
      return &condition;
  }
  return nullptr;
}

std::string words_of(const Json& condition) {
  const std::string message = text_at(condition, "/message");
  return message.empty() ? text_at(condition, "/reason") : message;
}

int64_t index_of(const Json& pod) {
  const Json& annotations = at(pod, "/metadata/annotations");
  const auto found = annotations.is_object() ? annotations.find(kIndex) : annotations.end();
  const bool has_index = annotations.is_object() && found != annotations.end() && found->is_string();
  return has_index ? config::read_int(found->get<std::string>()).value_or(-1) : -1;
}

// Times of Kubernetes sort as texts.
std::map<int64_t, const Json*> newest_pods(const Json& pods) {
  std::map<int64_t, const Json*> newest;
  const Json& items = at(pods, "/items");
  if (!items.is_array()) return newest;
  for (const Json& pod : items) {
    const Json*& known = newest[index_of(pod)];
    if (known == nullptr || text_at(*known, kCreated) <= text_at(pod, kCreated)) known = &pod;
  }
  return newest;
}

// How the program of a pod ended.
struct Failure {
  std::string finished;
  std::string pod, node;
  int64_t code = 1;
  std::string reason;  // Evicted, OOMKilled, ...

  std::string words() const {
    const std::string where = node.empty() ? pod : fmt::format("{} on {}", pod, node);
    if (code == kExitStoppedEarly && reason.empty()) return fmt::format("{} stopped early (exit code {})", where, code);
    if (code < 0) return fmt::format("{} was ended: {}", where, reason);
    return fmt::format("{} failed with exit code {}{}", where, code, reason.empty() ? "" : ": " + reason);
  }
};

const Json* own_container(const Json& pod) {
  const Json& containers = at(pod, "/status/containerStatuses");
  if (!containers.is_array()) return nullptr;
  for (const Json& container : containers) {
    if (text_at(container, "/name") == "megalith") return &container;
  }
  return nullptr;
}

std::optional<Failure> failure_of(const Json& pod) {
  if (text_at(pod, "/status/phase") != "Failed") return std::nullopt;
  Failure failure{.finished = text_at(pod, kCreated),
                  .pod = text_at(pod, "/metadata/name"),
                  .node = text_at(pod, "/spec/nodeName"),
                  .code = -1,
                  .reason = {}};
  if (const Json* container = own_container(pod); container != nullptr) {
    const Json& ended = at(*container, "/state/terminated");
    if (ended.is_object()) {
      failure.code = number_at(ended, "/exitCode");
      failure.finished = text_at(ended, "/finishedAt");
      const std::string reason = text_at(ended, "/reason");
      if (reason != "Error" && reason != "Completed") failure.reason = reason;
    }
  }
  if (const Json* disruption = condition_of(pod, "DisruptionTarget"); disruption != nullptr) {
    failure.code = -1;
    failure.reason = fmt::format("evicted, {}", words_of(*disruption));
  } else if (failure.code < 0) {
    const std::string message = text_at(pod, "/status/message");
    failure.reason = fmt::format("{}{}", text_at(pod, "/status/reason"), message.empty() ? "" : ", " + message);
  }
  return failure;
}

int64_t seconds_of(const std::string& time) {
  std::istringstream text(time);
  std::tm parts{};
  text >> std::get_time(&parts, "%Y-%m-%dT%H:%M:%SZ");
  return text.fail() ? 0 : ::timegm(&parts);
}

// Why the last start failed: the pods that fail together were taken along by the first of them, or by one that was
// evicted, to whose saving they answered.
std::optional<Failure> last_failure(const Json& pods) {
  std::vector<Failure> failures;
  const Json& items = at(pods, "/items");
  if (!items.is_array()) return std::nullopt;
  for (const Json& pod : items) {
    if (const auto failure = failure_of(pod)) failures.push_back(*failure);
  }
  std::sort(failures.begin(), failures.end(),
            [](const Failure& a, const Failure& b) { return a.finished < b.finished; });
  std::optional<Failure> cause;
  for (size_t i = failures.size(); i > 0; --i) {
    const Failure& failure = failures[i - 1];
    if (cause && seconds_of(failures[i].finished) - seconds_of(failure.finished) > kTogetherSeconds) break;
    if (!cause || cause->code >= 0) cause = failure;
  }
  return cause;
}

// Why a container of these has not started; empty: it has.
std::string why_not_started(const Json& pod) {
  for (const char* list : {"/status/initContainerStatuses", "/status/containerStatuses"}) {
    const Json& containers = at(pod, list);
    if (!containers.is_array()) continue;
    for (const Json& container : containers) {
      const std::string reason = text_at(container, "/state/waiting/reason");
      if (reason.empty() || reason == "PodInitializing" || reason == "ContainerCreating") continue;
      const std::string message = text_at(container, "/state/waiting/message");
      return fmt::format("{}{}", reason, message.empty() ? "" : ": " + message);
    }
  }
  return "";
}

std::string why_pending(const Json& pod) {
  std::string why = why_not_started(pod);
  if (const Json* scheduled = condition_of(pod, "PodScheduled", false); why.empty() && scheduled != nullptr)
    why = words_of(*scheduled);
  return fmt::format("pod {} {}", text_at(pod, "/metadata/name"), why.empty() ? "starts" : "waits: " + why);
}

std::string in_words(const std::set<std::string>& nodes) {
  std::vector<std::string> shown(nodes.begin(), nodes.end());
  if (shown.size() <= kShownNodes + 1) return fmt::format("{}", fmt::join(shown, ", "));
  const size_t more = shown.size() - kShownNodes;
  shown.resize(kShownNodes);
  return fmt::format("{} and {} more", fmt::join(shown, ", "), more);
}

// "... failed with exit code 2 matching FailJob rule ..."
std::optional<int64_t> code_in(const std::string& message) {
  constexpr std::string_view kBefore = "exit code ";
  const size_t found = message.find(kBefore);
  if (found == std::string::npos) return std::nullopt;
  const size_t begin = found + kBefore.size();
  return config::read_int(message.substr(begin, message.find_first_not_of("0123456789", begin) - begin));
}

LaunchRecord::Ending ending_of(const Json& failed, const std::optional<Failure>& last) {
  const std::string message = text_at(failed, "/message");
  int64_t code = code_in(message).value_or(last && last->code > 0 ? last->code : 1);
  if (code == kExitWrongInput) return {.code = code, .reason = "the input is wrong, the log says what"};
  if (code == kExitGivenUp) return {.code = code, .reason = "given up"};
  if (code == 0) code = 1;
  std::string reason = fmt::format("failed: {}", words_of(failed));
  if (last) reason += fmt::format("; the last pod to fail, {}", last->words());
  return {.code = code, .reason = reason};
}

std::string restarts_in_words(const Json& job, const std::optional<Failure>& last) {
  std::string text;
  if (const int64_t restarts = number_at(job, "/status/restarts"); restarts > 0)
    text = fmt::format("{} restart{}", restarts, restarts == 1 ? "" : "s");
  if (last) text += fmt::format("{}before that {}", text.empty() ? "" : ", ", last->words());
  return text;
}

}  // namespace

KubernetesState read_kubernetes_state(const Json& job, const Json& pods) {
  using Phase = JobState::Phase;
  KubernetesState state{.job = {.id = text_at(job, "/metadata/name")}};
  const std::optional<Failure> last = last_failure(pods);
  const Json* complete = condition_of(job, "Complete");
  if (complete == nullptr) complete = condition_of(job, "Completed");
  const Json* failed = condition_of(job, "Failed");
  if (complete != nullptr || failed != nullptr) {
    state.job.phase = Phase::ended;
    state.job.word = text_at(complete != nullptr ? *complete : *failed, "/type");
    state.ending =
        complete != nullptr ? LaunchRecord::Ending{.code = 0, .reason = "complete"} : ending_of(*failed, last);
    return state;
  }
  std::set<std::string> nodes;
  std::string pending;
  int64_t running = 0;
  const auto newest = newest_pods(pods);
  for (const auto& [index, pod] : newest) {
    const std::string phase = text_at(*pod, "/status/phase");
    if (phase == "Running") {
      ++running;
      nodes.insert(text_at(*pod, "/spec/nodeName"));
    } else if (phase == "Pending" && pending.empty()) {
      pending = why_pending(*pod);
    }
  }
  state.job.nodes = in_words(nodes);
  state.job.why = restarts_in_words(job, last);
  const auto before = [&](const std::string& why) {
    return state.job.why.empty() || why.empty() ? why + state.job.why : fmt::format("{}; {}", why, state.job.why);
  };
  if (running > 0 || at(job, "/metadata/deletionTimestamp").is_string()) {
    state.job.phase = Phase::running;
    state.job.word = "Running";
    if (!pending.empty()) state.job.why = before(fmt::format("{} of {} pods run, {}", running, newest.size(), pending));
    return state;
  }
  state.job.phase = Phase::waiting;
  state.is_suspended = at(job, "/spec/suspend") == Json(true);
  state.job.word = state.is_suspended ? "Suspended" : "Pending";
  state.job.why = before(state.is_suspended ? "its queue has not let it in" : pending);
  return state;
}

std::vector<JournalLine> starts_of(const Json& pods) {
  std::vector<JournalLine> lines;
  const Json& items = at(pods, "/items");
  if (!items.is_array()) return lines;
  std::vector<const Json*> first;
  for (const Json& pod : items) {
    const bool has_started = text_at(pod, "/status/phase") != "Pending" && !text_at(pod, "/spec/nodeName").empty();
    if (index_of(pod) == 0 && has_started) first.push_back(&pod);
  }
  std::sort(first.begin(), first.end(),
            [](const Json* a, const Json* b) { return text_at(*a, kCreated) < text_at(*b, kCreated); });
  for (const Json* pod : first) {
    const std::string name = text_at(*pod, "/metadata/name"), node = text_at(*pod, "/spec/nodeName");
    lines.push_back({.time = text_at(*pod, kCreated), .starts = true, .job = name, .detail = node});
    if (const auto failure = failure_of(*pod)) {
      const std::string what =
          failure->code == kExitStoppedEarly && failure->reason.empty() ? "stopped early" : "failed";
      lines.push_back({.time = failure->finished,
                       .job = name,
                       .code = failure->code < 0 ? kTerminated : failure->code,
                       .detail = failure->reason.empty() ? what : failure->reason});
    } else if (text_at(*pod, "/status/phase") == "Succeeded") {
      const Json* container = own_container(*pod);
      const std::string time = container == nullptr ? "" : text_at(*container, "/state/terminated/finishedAt");
      lines.push_back({.time = time.empty() ? text_at(*pod, kCreated) : time, .job = name, .detail = "complete"});
    }
  }
  return lines;
}

std::string newest_pod(const Json& pods, int64_t index) {
  const auto newest = newest_pods(pods);
  const auto found = newest.find(index);
  return found == newest.end() ? "" : text_at(*found->second, "/metadata/name");
}

std::string why_not_admitted(const Json& workloads, const std::string& owner) {
  const Json& items = at(workloads, "/items");
  if (!items.is_array()) return "";
  for (const Json& workload : items) {
    const Json& owners = at(workload, "/metadata/ownerReferences");
    if (!owners.is_array() || owners.empty() || text_at(owners.front(), "/name") != owner) continue;
    const Json* reserved = condition_of(workload, "QuotaReserved", false);
    return reserved == nullptr ? "" : words_of(*reserved);
  }
  return "";
}

}  // namespace megalith::launch
