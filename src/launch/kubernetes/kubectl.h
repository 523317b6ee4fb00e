#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launch/tool.h"

namespace megalith::launch {

// The user's kubectl, in one context and namespace of it: whatever the user switches to later, a launch is looked for
// where it was made.
class Kubectl {
 public:
  // Empty: kubectl's own choice.
  explicit Kubectl(std::string name_space, std::string context = "")
      : namespace_(std::move(name_space)), context_(std::move(context)) {}
  // In the context and namespace that kubectl has chosen now.
  Kubectl settled() const;

  const std::string& name_space() const { return namespace_; }
  const std::string& context() const { return context_; }

  // Io error where the cluster does not answer.
  ToolAnswer ask(const std::vector<std::string>& words, const std::string& input = "") const;
  // The answer as JSON; nothing where the object does not exist. Io error for all else.
  std::optional<nlohmann::ordered_json> get(const std::vector<std::string>& words) const;
  // Makes objects, all or none; user error where the cluster refuses one.
  std::string create(const std::string& manifests, const std::vector<std::string>& options = {}) const;
  // Hands each line over until the log has ended.
  ToolAnswer log(const std::vector<std::string>& words, const std::function<bool(const std::string&)>& line) const;

 private:
  std::vector<std::string> command(const std::vector<std::string>& words, bool has_limit) const;

  std::string namespace_, context_;
};

}  // namespace megalith::launch
