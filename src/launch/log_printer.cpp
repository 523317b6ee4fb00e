#include "launch/log_printer.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <thread>

#include "core/clock.h"
#include "core/error.h"

namespace megalith::launch {

namespace fs = std::filesystem;

namespace {

constexpr auto kPause = std::chrono::milliseconds(300);
constexpr double kSecondsBetweenQuestions = 10.0;

}  // namespace

fs::path log_of_rank(const LaunchRecord& record, int64_t rank) {
  const std::string begin = fmt::format("nemo_log_globalrank-{}_localrank-", rank);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(record.run_directory, error)) {
    if (entry.path().filename().string().starts_with(begin)) return entry.path();
  }
  return {};
}

namespace {

class LogPrinter {
 public:
  LogPrinter(fs::path file, std::string label, std::string other_label, std::string before = "")
      : file_(std::move(file)),
        label_(std::move(label)),
        other_label_(std::move(other_label)),
        before_(std::move(before)) {}

  // What has come since the last time, lines that are complete.
  void print_new(bool also_unfinished) {
    std::ifstream file(file_, std::ios::binary);
    file.seekg(offset_);
    for (std::string line; std::getline(file, line);) {
      if (file.eof() && !also_unfinished) break;
      offset_ += static_cast<std::streamoff>(line.size() + (file.eof() ? 0 : 1));
      if (is_wanted(line)) std::cout << before_ << line << '\n';
    }
    std::cout << std::flush;
  }

 private:
  bool is_wanted(const std::string& line) const {
    return label_.empty() || line.starts_with(label_) || line.starts_with(other_label_);
  }

  fs::path file_;
  std::string label_, other_label_;  // of the lines of one rank: "[3] ", "3: "
  std::string before_;               // each line
  std::streamoff offset_ = 0;
};

LogPrinter printer_of(const LaunchRecord& record, const LogOptions& options) {
  if (options.rank < 0) return {record.file(kLogName), "", ""};
  if (const fs::path own = log_of_rank(record, options.rank); !own.empty()) return {own, "", ""};
  const int64_t ranks = record.nodes * record.ranks_per_node;
  if (options.rank >= ranks)
    user_error("{} has {} ranks, counted from 0: there is no rank {}", record.name, ranks, options.rank);
  return {record.file(kLogName), fmt::format("[{}] ", options.rank), fmt::format("{}: ", options.rank)};
}

// The log of a launch, or those of all tasks of its stages, which come while it runs.
class Logs {
 public:
  Logs(const LaunchRecord& record, const LogOptions& options) : record_(record), rank_(options.rank) {
    if (record.stages.empty()) printers_.emplace("", printer_of(record, options));
  }

  void print_new(bool also_unfinished) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(record_.file(kTasksName), error)) {
      const std::string task = entry.path().stem().string();
      if (entry.path().extension() != ".log" || printers_.contains(task)) continue;
      const std::string label = rank_ < 0 ? "" : fmt::format("{}: ", rank_);
      printers_.emplace(task, LogPrinter(entry.path(), label, label, task + "  "));
    }
    for (auto& [task, printer] : printers_) printer.print_new(also_unfinished);
  }

 private:
  const LaunchRecord& record_;
  int64_t rank_;
  std::map<std::string, LogPrinter> printers_;
};

}  // namespace

void print_log(const LaunchRecord& record, const LogOptions& options, const std::function<bool()>& has_ended) {
  Logs logs(record, options);
  double asked_at = -kSecondsBetweenQuestions;
  bool ended = !options.follow;
  while (!ended) {
    logs.print_new(false);
    if (!std::cout) return;  // nobody reads any more
    ended = record.ending().has_value();
    if (!ended && monotonic_seconds() >= asked_at + kSecondsBetweenQuestions) {
      asked_at = monotonic_seconds();
      ended = has_ended();
    }
    if (!ended) std::this_thread::sleep_for(kPause);
  }
  logs.print_new(true);
}

}  // namespace megalith::launch
