#include "core/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/process/exit_codes.h"

namespace megalith {
namespace {

constexpr std::array kKinds = {ErrorKind::user, ErrorKind::io,         ErrorKind::data,    ErrorKind::device,
                               ErrorKind::comm, ErrorKind::non_finite, ErrorKind::internal};

TEST(Error, KindsThatASupervisorTellsApartHaveExitCodesOfTheirOwn) {
  std::set<int> codes;
  for (const ErrorKind kind : kKinds) {
    EXPECT_NE(std::find(kExitCodes.begin(), kExitCodes.end(), exit_code(kind)), kExitCodes.end()) << name_of(kind);
    codes.insert(exit_code(kind));
  }
  EXPECT_EQ(exit_code(ErrorKind::user), exit_code(ErrorKind::data));
  EXPECT_EQ(codes.size(), kKinds.size() - 1);
}

// srun answers the largest code of its tasks.
TEST(Error, NoExitCodeHidesWhatMattersMore) {
  for (const ErrorKind kind : kKinds) EXPECT_LT(exit_code(kind), kExitGivenUp) << name_of(kind);
  for (const ErrorKind cause : {ErrorKind::io, ErrorKind::device, ErrorKind::non_finite})
    EXPECT_LT(exit_code(ErrorKind::comm), exit_code(cause)) << name_of(cause);
}

TEST(Error, KeepsItsFactsInOtherWords) {
  const Error lost(ErrorKind::comm, "lost", {.ranks = {1, 3}, .group = "tensor", .call = "all_reduce"});
  const Error later = lost.reworded("failed before: lost");
  EXPECT_STREQ(later.what(), "failed before: lost");
  EXPECT_EQ(later.kind(), ErrorKind::comm);
  EXPECT_EQ(later.facts().ranks, (std::vector<int>{1, 3}));
  EXPECT_EQ(later.facts().group, "tensor");
  EXPECT_EQ(later.facts().call, "all_reduce");
  EXPECT_EQ(later.facts().parameter, "");
}

}  // namespace
}  // namespace megalith
