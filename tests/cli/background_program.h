#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/file.h"

namespace megalith::cli::testing {

inline bool wait_until(const std::function<bool()>& condition, double seconds = 60.0) {
  const double until = monotonic_seconds() + seconds;
  while (!condition()) {
    if (monotonic_seconds() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// The built program while it runs, for tests that disturb it. Ended with its ranks when it goes out of scope.
class BackgroundProgram {
 public:
  struct Circumstances {
    int ignored_signal = 0;     // as SIGHUP under nohup
    rlim_t descriptors = 1024;  // that a process may have open: the usual limit
  };

  // Words without blanks.
  BackgroundProgram(const std::string& arguments, const std::filesystem::path& output)
      : BackgroundProgram(arguments, output, Circumstances{}) {}
  BackgroundProgram(const std::string& arguments, const std::filesystem::path& output,
                    const Circumstances& circumstances)
      : output_(output) {
    std::vector<std::string> words = {MEGALITH_PROGRAM};
    std::istringstream text(arguments);
    for (std::string word; text >> word;) words.push_back(word);
    std::vector<char*> command;
    for (std::string& word : words) command.push_back(word.data());
    command.push_back(nullptr);
    process_ = ::fork();
    if (process_ != 0) return;
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP})
      ::signal(signal, signal == circumstances.ignored_signal ? SIG_IGN : SIG_DFL);
    const rlimit limit{.rlim_cur = circumstances.descriptors, .rlim_max = circumstances.descriptors};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::execv(command[0], command.data());
    ::_exit(127);
  }
  ~BackgroundProgram() {
    for (const pid_t rank : ranks()) ::kill(rank, SIGKILL);
    if (!has_ended()) ::kill(process_, SIGKILL);
    exit_code();
  }
  BackgroundProgram(const BackgroundProgram&) = delete;
  BackgroundProgram& operator=(const BackgroundProgram&) = delete;

  pid_t process() const { return process_; }
  std::vector<pid_t> ranks() const {
    std::ifstream file("/proc/" + std::to_string(process_) + "/task/" + std::to_string(process_) + "/children");
    std::vector<pid_t> found;
    for (pid_t rank = 0; file >> rank;) found.push_back(rank);
    return found;
  }
  std::string text() const { return std::filesystem::exists(output_) ? read_text(output_) : ""; }
  bool wait_for_text(const std::string& words) {
    return wait_until([&] { return text().find(words) != std::string::npos || has_ended(); }) &&
           text().find(words) != std::string::npos;
  }
  // Before that the program is not yet loaded.
  bool wait_until_it_handles(int signal) const {
    return wait_until([&] {
      std::ifstream status("/proc/" + std::to_string(process_) + "/status");
      for (std::string line; std::getline(status, line);) {
        if (line.starts_with("SigCgt:")) return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
      }
      return false;
    });
  }
  void send(int signal) const { ::kill(process_, signal); }

  bool has_ended() {
    if (!ended_) ended_ = ::waitpid(process_, &status_, WNOHANG) == process_;
    return ended_;
  }
  // 128 + the signal that ended it; -1 where nothing does.
  int exit_code() {
    if (!wait_until([&] { return has_ended(); })) return -1;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }

 private:
  std::filesystem::path output_;
  pid_t process_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace megalith::cli::testing
