#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace megalith {

enum class ErrorKind {
  user,      // the user's mistake: config, command line
  io,        // the machine refused a read or a write
  data,      // a file holds something else than it should
  device,    // an accelerator or its driver failed
  comm,      // another rank failed or did not arrive
  internal,  // a bug in Megalith
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// The exit code of the process (docs/design.md, section 7). `data` counts as the user's: running again will not help.
int exit_code(ErrorKind kind);

template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void user_error(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::user, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void data_error(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::data, fmt::format(format, std::forward<Args>(args)...));
}

// An I/O error that ends with the text of the current errno.
[[noreturn]] void io_error_errno(const std::string& what);

namespace detail {
[[noreturn]] void check_failed(const char* expression, const char* file, int line, const std::string& message);
}

}  // namespace megalith

// A condition that only a bug can break.
#define MEGALITH_CHECK(condition, ...)                                                              \
  do {                                                                                              \
    if (!(condition)) [[unlikely]]                                                                  \
      ::megalith::detail::check_failed(#condition, __FILE__, __LINE__, ::fmt::format(__VA_ARGS__)); \
  } while (false)
