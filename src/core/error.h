#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace megalith {

enum class ErrorKind {
  user,        // the user's mistake: config, command line
  io,          // the machine refused a read or a write
  data,        // a file holds something else than it should
  device,      // an accelerator or its driver failed
  comm,        // another rank failed or did not arrive
  non_finite,  // training came to a number that is none
  internal,    // a bug in Megalith
};

const char* name_of(ErrorKind kind);

// What programs read of an error, beside its words; empty where unknown.
struct ErrorFacts {
  std::vector<int> ranks;  // of the world: those that failed or did not arrive, ascending
  std::string group;       // of ranks: "tensor"
  std::string call;        // the operation: "all_reduce", "attention_forward"
  std::string parameter;   // its logical name
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, ErrorFacts facts = {})
      : std::runtime_error(message), kind_(kind), facts_(std::move(facts)) {}
  ErrorKind kind() const { return kind_; }
  const ErrorFacts& facts() const { return facts_; }
  // The same in other words.
  Error reworded(const std::string& message) const { return {kind_, message, facts_}; }

 private:
  ErrorKind kind_;
  ErrorFacts facts_;
};

// The exit code of the process (core/process/exit_codes.h). `data` counts as the user's: running again will not help.
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
