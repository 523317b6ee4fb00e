#include "resilience/grpc/wire.h"

#include <gtest/gtest.h>

#include "control.pb.h"

namespace megalith::resilience {
namespace {

control::Report report_of_version(int64_t version) {
  control::Report wire;
  wire.mutable_header()->set_protocol(version);
  wire.mutable_header()->set_sender("node0");
  wire.set_boot_id("boot");
  return wire;
}

TEST(Wire, TakesFieldsOfAnotherMinorVersion) {
  // Field 900, which nobody has: a text.
  const std::string bytes = report_of_version(kProtocol + 3).SerializeAsString() + "\xa2\x38\x03new";
  const std::optional<Report> report = report_of(bytes);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->boot_id, "boot");
}

// So that who speaks it can be named, whatever its other fields have become.
TEST(Wire, TakesTheHeaderAloneOfAnotherMajorVersion) {
  control::Report wire = report_of_version(kProtocol + 1000);
  wire.set_check(77);
  const std::optional<Report> report = report_of(wire.SerializeAsString());
  ASSERT_TRUE(report);
  EXPECT_EQ(report->header.sender, "node0");
  EXPECT_EQ(report->boot_id, "");
  control::Order order;
  order.mutable_header()->set_protocol(kProtocol + 1000);
  order.set_kind(77);
  EXPECT_TRUE(order_of(order.SerializeAsString()));
}

TEST(Wire, RefusesWordsThatNobodyKnows) {
  control::Report wire = report_of_version(kProtocol);
  wire.set_check(77);
  EXPECT_FALSE(report_of(wire.SerializeAsString()));
  control::Order order;
  order.mutable_header()->set_protocol(kProtocol);
  order.set_kind(kOrderKinds);
  EXPECT_FALSE(order_of(order.SerializeAsString()));
}

TEST(Wire, RefusesWhatIsTorn) {
  const std::string whole = report_of_version(kProtocol).SerializeAsString();
  ASSERT_TRUE(report_of(whole));
  int refused = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::optional<Report> report = report_of(std::string_view(whole).substr(0, size));
    refused += !report;
    // A message that ends between two fields is whole: it lacks what comes after.
    if (report) {
      EXPECT_TRUE(report->boot_id.empty()) << size;
    }
  }
  EXPECT_GT(refused, static_cast<int>(whole.size()) / 2);
}

}  // namespace
}  // namespace megalith::resilience
