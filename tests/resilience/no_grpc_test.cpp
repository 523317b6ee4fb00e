#include <gtest/gtest.h>

#include "expect_error.h"
#include "resilience/unix_transport.h"

namespace megalith::resilience {
namespace {

TEST(NoGrpc, SaysWhatIsMissing) {
  const std::vector<std::string> parts{"no module", "libmegalith_control.so", "libgrpc++-dev"};
  expect_error(ErrorKind::user, parts, [] { require_control_plane(); });
  expect_error(ErrorKind::user, parts, [] { listen_for_monitors({.socket = "socket"}); });
  expect_error(ErrorKind::user, parts, [] { dial_supervisors({{.socket = "socket"}}, "node0"); });
}

}  // namespace
}  // namespace megalith::resilience
