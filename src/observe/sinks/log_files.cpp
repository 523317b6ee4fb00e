#include "observe/sinks/log_files.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <vector>

#include "core/error.h"

namespace megalith::observe {

namespace {
constexpr const char* kPattern = "[Megalith %L %Y-%m-%d %H:%M:%S] %v";

std::mutex logger_mutex;   // of current()
std::mutex console_mutex;  // of console_writer(); taken inside a sink, so never around anything else

std::function<void(std::string_view)>& console_writer() {
  static std::function<void(std::string_view)> writer;
  return writer;
}

class ConsoleLogSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t formatted;
    formatter_->format(message, formatted);
    const std::string_view line(formatted.data(), formatted.size());
    std::function<void(std::string_view)> writer;
    {
      const std::lock_guard lock(console_mutex);
      writer = console_writer();
    }
    if (writer) {
      writer(line);
    } else {
      std::fflush(stdout);  // both may go to one pipe, and lines stay whole
      std::fwrite(line.data(), 1, line.size(), stderr);
    }
  }
  void flush_() override { std::fflush(stderr); }
};

std::shared_ptr<spdlog::logger> make_logger(std::vector<spdlog::sink_ptr> sinks) {
  auto logger = std::make_shared<spdlog::logger>("megalith", sinks.begin(), sinks.end());
  logger->set_pattern(kPattern);
  logger->flush_on(spdlog::level::info);  // few lines, and the last ones before a crash matter most
  const auto is_said = std::make_shared<std::atomic<bool>>(false);
  logger->set_error_handler([is_said](const std::string& what) {
    if (!is_said->exchange(true)) fmt::print(stderr, "a log loses lines: {}\n", what);
  });
  return logger;
}

std::shared_ptr<spdlog::logger>& current() {
  static std::shared_ptr<spdlog::logger> logger = make_logger({std::make_shared<ConsoleLogSink>()});
  return logger;
}

// A message may quote a file name or data: it must not move the cursor or forge a line.
std::string escaped(const std::string& message) {
  std::string text;
  for (const char c : message) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      text += c;
    }
  }
  return text;
}
}  // namespace

void set_up_log(const LogOptions& options) {
  std::vector<spdlog::sink_ptr> sinks;
  if (options.console) sinks.push_back(std::make_shared<ConsoleLogSink>());
  if (!options.directory.empty()) {
    try {
      const std::string all =
          fmt::format("nemo_log_globalrank-{}_localrank-{}.txt", options.global_rank, options.local_rank);
      sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>((options.directory / all).string()));
      auto errors =
          std::make_shared<spdlog::sinks::basic_file_sink_mt>((options.directory / "nemo_error_logs.txt").string());
      errors->set_level(spdlog::level::warn);
      sinks.push_back(std::move(errors));
    } catch (const spdlog::spdlog_ex& error) {
      fail(ErrorKind::io, "{}", error.what());
    }
  }
  auto logger = make_logger(std::move(sinks));
  const std::lock_guard lock(logger_mutex);
  current() = std::move(logger);
}

void set_log_console(std::function<void(std::string_view)> write) {
  const std::lock_guard lock(console_mutex);
  console_writer() = std::move(write);
}

std::shared_ptr<spdlog::logger> log() {
  const std::lock_guard lock(logger_mutex);
  return current();
}

void log_info(const std::string& message) {
  log()->info(escaped(message));
}
void log_warning(const std::string& message) {
  log()->warn(escaped(message));
}
void log_error(const std::string& message) {
  log()->error(escaped(message));
}

}  // namespace megalith::observe
