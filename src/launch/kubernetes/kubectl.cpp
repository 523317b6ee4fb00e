#include "launch/kubernetes/kubectl.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config/scalar.h"
#include "core/error.h"

namespace megalith::launch {

namespace {

constexpr double kSeconds = 60.0;
constexpr const char* kRequestTimeout = "--request-timeout=20s";

bool is_missing(const ToolAnswer& answer) {
  return answer.errors.find("(NotFound)") != std::string::npos;
}

// "configmap/gpt3-1 created" and so on.
std::vector<std::string> created_in(const std::string& output) {
  constexpr std::string_view kCreated = " created";
  std::vector<std::string> objects;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(kCreated)) objects.push_back(line.substr(0, line.size() - kCreated.size()));
  }
  return objects;
}

}  // namespace

std::vector<std::string> Kubectl::command(const std::vector<std::string>& words, bool has_limit) const {
  std::vector<std::string> command = {"kubectl"};
  if (!context_.empty()) command.push_back("--context=" + context_);
  if (!namespace_.empty()) command.push_back("--namespace=" + namespace_);
  if (has_limit) command.emplace_back(kRequestTimeout);
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

Kubectl Kubectl::settled() const {
  const auto word_of = [&](const std::vector<std::string>& words) {
    const ToolAnswer answer = ask(words);  // inside of a cluster there may be no context at all
    return answer.good() ? std::string(config::trimmed(answer.output)) : std::string();
  };
  const std::string context = context_.empty() ? word_of({"config", "current-context"}) : context_;
  if (!namespace_.empty()) return Kubectl(namespace_, context);
  return Kubectl(word_of({"config", "view", "--minify", "--output=jsonpath={..namespace}"}), context);
}

ToolAnswer Kubectl::ask(const std::vector<std::string>& words, const std::string& input) const {
  ToolAnswer answer = run_tool({.command = command(words, true), .input = input, .seconds = kSeconds});
  if (!answer.in_time) fail(ErrorKind::io, "kubectl {}: the cluster did not answer in time", words.front());
  return answer;
}

std::optional<nlohmann::ordered_json> Kubectl::get(const std::vector<std::string>& words) const {
  std::vector<std::string> all = {"get", "--output=json"};
  all.insert(all.end(), words.begin(), words.end());
  const ToolAnswer answer = ask(all);
  if (is_missing(answer)) return std::nullopt;
  if (!answer.good()) fail(ErrorKind::io, "kubectl get {}: {}", words.front(), answer.words());
  try {
    return nlohmann::ordered_json::parse(answer.output);
  } catch (const nlohmann::json::exception& problem) {
    fail(ErrorKind::io, "kubectl get {} does not answer with JSON: {}", words.front(), problem.what());
  }
}

std::string Kubectl::create(const std::string& manifests, const std::vector<std::string>& options) const {
  std::vector<std::string> words = {"create", "--filename=-", "--validate=strict"};
  words.insert(words.end(), options.begin(), options.end());
  const ToolAnswer answer = ask(words, manifests);
  if (answer.good()) return answer.output;
  const std::vector<std::string> made = created_in(answer.output);
  if (!made.empty() && options.empty()) {
    std::vector<std::string> undo = {"delete", "--ignore-not-found", "--wait=false"};
    undo.insert(undo.end(), made.begin(), made.end());
    ask(undo);
  }
  const bool is_there = answer.errors.find("(AlreadyExists)") != std::string::npos;
  user_error("the cluster refused it: {}{}", answer.words(),
             is_there ? "; somebody has launched under this name: give another --name" : "");
}

ToolAnswer Kubectl::log(const std::vector<std::string>& words,
                        const std::function<bool(const std::string&)>& line) const {
  std::vector<std::string> all = {"logs"};
  all.insert(all.end(), words.begin(), words.end());
  return run_tool(
      {.command = command(all, false), .seconds = std::numeric_limits<double>::infinity(), .on_line = line});
}

}  // namespace megalith::launch
