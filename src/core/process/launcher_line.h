#pragma once

#include <optional>
#include <string>

namespace megalith {

// The way between a rank and the launcher that started it (launch/ranks/local.h): a pair of sockets that carry packets.
// The rank inherits its end; MEGALITH_LAUNCHER_FD holds the number of the descriptor. The launcher's first packet is
// the secret of the run, which thereby is in no argument and no variable, where other processes could read it. Every
// later packet is one byte: a signal that asks the run to end, in either direction, or kRankIsRunning.
class LauncherLine {
 public:
  static constexpr const char* kVariable = "MEGALITH_LAUNCHER_FD";
  static constexpr char kRankIsRunning = 127;  // to the launcher: from here on a stop saves

  // The rank's end, as kVariable names it. Waits a while for the secret: whoever started this process may write down
  // first that it did. User error for a descriptor that no launcher left.
  static LauncherLine inherit(int descriptor);

  // Takes the descriptor.
  explicit LauncherLine(int descriptor) : descriptor_(descriptor) {}
  ~LauncherLine();
  LauncherLine(LauncherLine&& other) noexcept;
  LauncherLine& operator=(LauncherLine&&) = delete;

  int descriptor() const { return descriptor_; }
  const std::string& secret() const { return secret_; }

  // Also from a signal handler. False where the other side is gone.
  bool send(char word) const;
  void send_secret(const std::string& secret) const;

  // Between two that know what comes: the store of a run and its starter (launch/ranks/store_process.h). Awaiting gives
  // nothing where none came in time, or the other side is gone.
  void send_text(const std::string& text) const;
  std::optional<std::string> await_text(double seconds);

  // What has come, if anything has. After the other side is gone nothing comes, and is_over().
  std::optional<char> receive();
  bool is_over() const { return is_over_; }

 private:
  // Whether something has come, or the other side is gone, within so many seconds.
  bool is_readable_within(double seconds) const;
  void receive_secret();
  void send_packet(char kind, const std::string& text, const char* what) const;

  int descriptor_;
  std::string secret_;
  bool is_over_ = false;
};

}  // namespace megalith
