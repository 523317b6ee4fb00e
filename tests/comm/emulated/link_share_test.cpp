#include "comm/emulated/link_share.h"

#include <gtest/gtest.h>

#include "comm/emulated/wires.h"

namespace megalith::comm {
namespace {

// 300 bytes a nanosecond inside, 40 between.
CallCost inside(double latency, double bytes) {
  return {.latency = latency, .bytes = {bytes, 0.0}};
}
CallCost between(double latency, double bytes) {
  return {.latency = latency, .bytes = {0.0, bytes}};
}

TEST(LinkShare, ACallAloneLastsAsLongAsTheWireSays) {
  LinkShare share(wire_of_eights());
  EXPECT_DOUBLE_EQ(share.end_of(share.add(inside(10e-6, 300e6), 5.0)), 5.0 + 10e-6 + 1e-3);
  EXPECT_DOUBLE_EQ(share.end_of(share.add({.latency = 2e-6, .bytes = {300e6, 80e6}}, 6.0)), 6.0 + 2e-6 + 2e-3);
  EXPECT_DOUBLE_EQ(share.end_of(share.add({}, 7.0)), 7.0);
}

TEST(LinkShare, CallsThatOverlapOnALinkShareIt) {
  LinkShare share(wire_of_eights());
  const int64_t first = share.add(inside(0.0, 300e6), 0.0);
  EXPECT_NEAR(share.end_of(first), 1e-3, 1e-12);
  // When half of the first is through; then both have as much left to share.
  const int64_t second = share.add(inside(0.0, 300e6), 0.5e-3);
  EXPECT_NEAR(share.end_of(first), 1.5e-3, 1e-12);
  EXPECT_NEAR(share.end_of(second), 2e-3, 1e-12);
  // A latency takes nothing of the link.
  const int64_t third = share.add(inside(1e-3, 300e6), 1.5e-3);
  EXPECT_NEAR(share.end_of(second), 2e-3, 1e-12);
  EXPECT_NEAR(share.end_of(third), 3.5e-3, 1e-12);
}

TEST(LinkShare, LinksAreNotSharedWithEachOther) {
  LinkShare share(wire_of_eights());
  const int64_t near = share.add(inside(0.0, 300e6), 0.0);
  const int64_t far = share.add(between(0.0, 40e6), 0.0);
  EXPECT_NEAR(share.end_of(near), 1e-3, 1e-12);
  EXPECT_NEAR(share.end_of(far), 1e-3, 1e-12);
}

TEST(LinkShare, ACallWaitsForTheOneBeforeItInItsGroup) {
  LinkShare share(wire_of_eights());
  const int64_t first = share.add(inside(10e-6, 300e6), 0.0);
  const int64_t second = share.add(inside(10e-6, 300e6), 0.0, first);
  const int64_t third = share.add({}, 0.0, second);
  EXPECT_NEAR(share.end_of(second), 2 * (10e-6 + 1e-3), 1e-12);
  EXPECT_EQ(share.end_of(third), share.end_of(second));
  // Of one that has ended long ago there is nothing to wait for.
  EXPECT_NEAR(share.end_of(share.add(inside(0.0, 300e6), 1.0, first)), 1.0 + 1e-3, 1e-12);
}

}  // namespace
}  // namespace megalith::comm
