#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"

namespace megalith {

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

template <class Body>
std::string user_error_of(Body&& body) {
  return error_of(ErrorKind::user, body);
}

inline void expect_parts(const std::string& message, const std::vector<std::string>& parts) {
  for (const auto& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << "no '" << part << "' in: " << message;
}

// `body` throws an error of this kind whose message has all the parts.
template <class Body>
void expect_error(ErrorKind kind, const std::vector<std::string>& parts, Body&& body) {
  expect_parts(error_of(kind, body), parts);
}

}  // namespace megalith
