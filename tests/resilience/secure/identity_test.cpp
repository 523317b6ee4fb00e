#include "resilience/secure/identity.h"

#include <gtest/gtest.h>

namespace megalith::resilience {
namespace {

TEST(Identity, IsWrittenAndReadAsAUri) {
  const std::pair<Identity, const char*> cases[] = {
      {{.role = Role::supervisor}, "megalith://supervisor"},
      {{.role = Role::monitor}, "megalith://monitor"},
      {{.role = Role::monitor, .node = "rack1.node-4"}, "megalith://monitor/rack1.node-4"},
      {{.role = Role::human_operator}, "megalith://operator"},
      {{.role = Role::viewer}, "megalith://viewer"}};
  for (const auto& [identity, uri] : cases) {
    EXPECT_EQ(uri_of(identity), uri);
    EXPECT_EQ(identity_of_uri(uri), identity);
  }
}

TEST(Identity, IsNothingElse) {
  for (const char* uri :
       {"", "megalith://", "megalith:/monitor", "https://monitor", "megalith://Monitor", "megalith://monitor/",
        "megalith://monitor/../x", "megalith://monitor/a/b", "megalith://supervisor/node0", "megalith://viewer/node0",
        "megalith://monitor node0", "xmegalith://monitor"})
    EXPECT_FALSE(identity_of_uri(uri)) << uri;
  EXPECT_FALSE(identity_of_uri(std::string_view("megalith://monitor\0", 19)));
}

}  // namespace
}  // namespace megalith::resilience
