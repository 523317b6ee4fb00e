#pragma once

#include <array>
#include <csignal>
#include <string>
#include <utility>

namespace megalith {

class LauncherLine;

// The signals that ask a run to end: Slurm's SIGUSR1 before the time is up, and SIGHUP when a terminal is gone.
inline constexpr std::array<std::pair<int, const char*>, 4> kStopSignals = {
    {{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGUSR1, "SIGUSR1"}, {SIGHUP, "SIGHUP"}}};

// "" for other signals.
const char* stop_signal_name(int signal);

// A SIGINT so much later than the first means it; one key press may reach a process several times.
constexpr double kSecondInterruptSeconds = 1.0;

// What a person is told. Also from a signal handler.
enum class StopNotice { before_first_step, stopping, quitting };
void write_stop_notice(int descriptor, StopNotice notice, int signal);

// How this process takes stop signals. A SIGHUP that is ignored (nohup) stays ignored.
//
// A rank that has a launcher passes a signal on to it and does nothing else: the launcher asks all ranks, once, however
// many of them it reached. Without one, or when it is gone, the first signal is noted, further ones change nothing, and
// a second SIGINT ends the process as if no handler were there. Until hold() a signal ends the process at once, with
// kExitStoppedEarly: there is nothing to save yet.
namespace stop_signals {

struct Options {
  LauncherLine* launcher = nullptr;  // must outlive the process
  bool speaks = true;                // says on standard error that it has understood
};

// Until give_back(), which only tests need.
void take(const Options& options);
// Until then as well: of a process that is stopped in another way, by its monitor. Whoever starts it had better ignore
// them before: until here they end it.
void ignore();
void give_back();
bool are_taken();

// From here on signals are noted and the process goes on.
void hold();
// hold(), and the launcher learns that a stop saves from here on.
void begin_running();

// Empty, or why the run should end.
std::string reason();

// The other way, for a process that takes them when it has the time: from here on they wait for this thread. One that
// reaches another thread is handed on: libraries start threads before main() has blocked anything (OpenBLAS does), in
// which a stop signal would end the process. Those that are started now take them no more than they would before.
void await_in_this_thread();
// That has come since; 0: none.
int next_awaited();

}  // namespace stop_signals

}  // namespace megalith
