#include "resilience/secure/identity.h"

#include <fmt/format.h>

#include "config/fleet_environment.h"
#include "resilience/names.h"

namespace megalith::resilience {

namespace {
constexpr std::array<const char*, kRoles> kRoleWords = {"supervisor", "monitor", "operator", "viewer"};
constexpr std::string_view kScheme = "megalith://";
}  // namespace

const char* name_of(Role role) {
  return word_of(kRoleWords, role);
}

std::string uri_of(const Identity& identity) {
  return fmt::format("{}{}{}{}", kScheme, name_of(identity.role), identity.node.empty() ? "" : "/", identity.node);
}

std::optional<Identity> identity_of_uri(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return std::nullopt;
  uri.remove_prefix(kScheme.size());
  const size_t slash = uri.find('/');
  const std::optional<Role> role = value_of<Role>(kRoleWords, uri.substr(0, slash));
  if (!role) return std::nullopt;
  if (slash == std::string_view::npos) return Identity{.role = *role};
  std::string node(uri.substr(slash + 1));
  if (*role != Role::monitor || !config::is_node_name(node)) return std::nullopt;
  return Identity{.role = *role, .node = std::move(node)};
}

std::string words_of(const Identity& identity) {
  if (!identity.node.empty()) return "the monitor of " + identity.node;
  return fmt::format("{} {}", identity.role == Role::human_operator ? "an" : "a", name_of(identity.role));
}

}  // namespace megalith::resilience
