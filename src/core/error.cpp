#include "core/error.h"

#include <cerrno>
#include <cstring>

#include "core/process/exit_codes.h"

namespace megalith {

const char* name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::user:
      return "user";
    case ErrorKind::io:
      return "io";
    case ErrorKind::data:
      return "data";
    case ErrorKind::device:
      return "device";
    case ErrorKind::comm:
      return "comm";
    case ErrorKind::non_finite:
      return "non_finite";
    case ErrorKind::internal:
      break;
  }
  return "internal";
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::user:
    case ErrorKind::data:
      return kExitWrongInput;
    case ErrorKind::io:
      return kExitIo;
    case ErrorKind::device:
      return kExitDevice;
    case ErrorKind::comm:
      return kExitRankLost;
    case ErrorKind::non_finite:
      return kExitNonFinite;
    case ErrorKind::internal:
      break;
  }
  return kExitInternal;
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
