#pragma once

#include <sys/types.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "core/process/launcher_line.h"
#include "launch/ranks/live_line.h"

namespace megalith::launch {

// The lines that come out of a pipe, each with a prefix.
class PrefixedLines {
 public:
  // `live`: where a line goes that the rank draws again and again; none where it has no terminal to draw on.
  PrefixedLines(int pipe, std::string prefix, std::FILE* to, LiveLine* live = nullptr);
  ~PrefixedLines();
  PrefixedLines(PrefixedLines&& other) noexcept;
  PrefixedLines& operator=(PrefixedLines&&) = delete;

  // -1 once the writers have closed it.
  int pipe() const { return pipe_; }
  // Passes on what is there now, without waiting.
  void pump();
  // Passes on what is there, the last line whole or not, and closes.
  void finish();

 private:
  void draw_live();
  void write_line(const std::string& line);

  int pipe_;
  std::string prefix_;
  std::FILE* to_;
  LiveLine* live_;
  std::string begun_;  // a line without its end
};

// How a process ended.
struct Ending {
  int exit_code = 0;  // 128 + signal for one that a signal ended
  int signal = 0;

  std::string describe() const;
};

// One rank: a process of its own group, without standard input, that is told to end when this one dies.
class RankProcess {
 public:
  struct Options {
    int rank = 0;
    const std::vector<std::string>* command = nullptr;
    std::vector<std::string> environment;  // "NAME=value", on top of this process's own
    std::optional<std::string> secret{};   // given: the rank inherits a line to this process, and finds it there
    std::FILE* output = nullptr;
    std::FILE* errors = nullptr;
    LiveLine* live = nullptr;  // of the terminal that both go to; none: there is no terminal
  };
  struct Pipe {
    int read = -1;
    int write = -1;
  };
  explicit RankProcess(const Options& options);

  int rank() const { return rank_; }
  bool running() const { return !ending_; }
  const std::optional<Ending>& ending() const { return ending_; }
  PrefixedLines& output() { return output_; }
  PrefixedLines& errors() { return errors_; }
  // None where no secret was given.
  std::optional<LauncherLine>& line() { return line_; }

  // To it and to what it started.
  void send(int signal) const;
  // True when it has ended since the last time.
  bool reap();

 private:
  RankProcess(const Options& options, const Pipe& output, const Pipe& errors);
  // The rank's end of a new line; -1 where there is none.
  int open_line(const std::optional<std::string>& secret);

  int rank_;
  pid_t process_ = -1;
  std::optional<Ending> ending_;
  PrefixedLines output_;
  PrefixedLines errors_;
  std::optional<LauncherLine> line_;
};

}  // namespace megalith::launch
