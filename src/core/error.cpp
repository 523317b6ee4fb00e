#include "core/error.h"

#include <cerrno>
#include <cstring>

namespace megalith {

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::user:
    case ErrorKind::data:
      return 2;
    case ErrorKind::io:
    case ErrorKind::device:
    case ErrorKind::comm:
    case ErrorKind::internal:
      return 1;
  }
  return 1;
}

void io_error_errno(const std::string& what) {
  const int code = errno;
  throw Error(ErrorKind::io, fmt::format("{}: {}", what, std::strerror(code)));
}

namespace detail {
void check_failed(const char* expression, const char* file, int line, const std::string& message) {
  throw Error(ErrorKind::internal, fmt::format("internal error: {} ({} at {}:{})", message, expression, file, line));
}
}  // namespace detail

}  // namespace megalith
