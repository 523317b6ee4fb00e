#include "resilience/secure/endpoint.h"

#include <gtest/gtest.h>

#include "expect_error.h"

namespace megalith::resilience {
namespace {

TEST(Endpoint, IsAHostAndAPort) {
  EXPECT_EQ(parse_endpoint("node0:7000", "--listen"), (Endpoint{"node0", 7000}));
  EXPECT_EQ(parse_endpoint("10.0.0.7:0", "--listen"), (Endpoint{"10.0.0.7", 0}));
  EXPECT_EQ(parse_endpoint("[fd00::1]:65535", "--listen"), (Endpoint{"fd00::1", 65535}));
  for (const char* text : {"node0:7000", "[::1]:7000"}) EXPECT_EQ(parse_endpoint(text, "").text(), text);
}

TEST(Endpoint, IsNothingElse) {
  for (const char* text : {"", ":", "node0", "node0:", ":7000", "node0:x", "node0:70000", "node0:-1", "node0:7 ",
                           "fd00::1:7000", "[]:7000"})
    expect_error(ErrorKind::user, {"--listen", text, "host:port"}, [&] { parse_endpoint(text, "--listen"); });
}

TEST(Endpoint, IsNoneOfThisMachine) {
  expect_error(ErrorKind::user, {"192.0.2.1:7000", "does not have"}, [] { listen_at({"192.0.2.1", 7000}); });
  expect_error(ErrorKind::user, {"no-such-host.invalid"}, [] { listen_at({"no-such-host.invalid", 7000}); });
}

}  // namespace
}  // namespace megalith::resilience
