#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace megalith::resilience {

// What the owner of a certificate may do over TCP. A supervisor gives orders, a monitor reports for its own node, an
// operator asks a supervisor for something, a viewer may do nothing but look.
enum class Role : uint8_t { supervisor, monitor, human_operator, viewer };
constexpr int kRoles = 4;
const char* name_of(Role role);

// Who somebody is, as the URI in his certificate says.
struct Identity {
  Role role = Role::viewer;
  std::string node;  // monitor: the only one for which it speaks; empty: one that it names itself

  bool operator==(const Identity&) const = default;
};

// megalith://supervisor, megalith://monitor, megalith://monitor/node4, megalith://operator, megalith://viewer
std::string uri_of(const Identity& identity);
// Nothing for any other text.
std::optional<Identity> identity_of_uri(std::string_view uri);
// "the monitor of node4", for people.
std::string words_of(const Identity& identity);

}  // namespace megalith::resilience
