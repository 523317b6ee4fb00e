#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace spdlog {
class logger;
}

namespace megalith::observe {

// The program's log for people: `[Megalith I 2026-01-31 12:34:56] message`. Until set_up_log() is called it goes to
// stderr only. Control characters in messages are shown escaped. Thread-safe.

struct LogOptions {
  std::filesystem::path directory;  // exists; empty: no files
  int64_t global_rank = 0;
  int64_t local_rank = 0;
  bool console = true;  // stderr
};

// Adds nemo_log_globalrank-R_localrank-L.txt (everything) and nemo_error_logs.txt (warnings and errors) in the run's
// directory; both are appended to. Throws an I/O error if they cannot be opened.
void set_up_log(const LogOptions& options);

// Where console lines (with their line end) go instead of stderr, for example above a live line; nothing: back to
// stderr.
void set_log_console(std::function<void(std::string_view line)> write);

std::shared_ptr<spdlog::logger> log();
void log_info(const std::string& message);
void log_warning(const std::string& message);
void log_error(const std::string& message);

}  // namespace megalith::observe
