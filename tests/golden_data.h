#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace megalith::testing {

// Golden data from elsewhere lies where MEGALITH_GOLDEN says; empty where it is not set, and the test should skip.
inline std::filesystem::path golden_data() {
  const char* root = std::getenv("MEGALITH_GOLDEN");
  return root == nullptr ? std::filesystem::path() : std::filesystem::path(root);
}

}  // namespace megalith::testing

#define MEGALITH_GOLDEN_OR_SKIP(variable)                                    \
  const std::filesystem::path variable = ::megalith::testing::golden_data(); \
  if ((variable).empty()) GTEST_SKIP() << "skipped: MEGALITH_GOLDEN is not set"
