#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"

namespace megalith::comm {

// The message of the error of this kind that `body` throws; empty, and a test failure, when it throws none.
template <class Body>
std::string error_of(ErrorKind kind, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

inline void expect_parts(const std::string& message, const std::vector<std::string>& parts) {
  for (const auto& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << "no '" << part << "' in: " << message;
}

}  // namespace megalith::comm
