#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace megalith::launch {

struct LocalLaunch {
  int ranks = 1;       // on this machine
  int first_rank = 0;  // of these, in the whole run
  int world = 0;       // ranks of the whole run; 0: `ranks`
  // Of each rank: the program, by path, and its arguments. /proc/self/exe is this program.
  std::vector<std::string> command;
  std::string master_address = "127.0.0.1";  // where rank 0 will listen
  int master_port = 0;                       // 0: one that is free now
  // More ranks than GPUs: NCCL refuses two ranks on one GPU of one host, so each is told that it has a host of its own
  // and talks over the loopback device. For tests of correctness: nothing about its speed is true.
  bool ranks_share_gpus = false;
  // The ranks take a stop from their line and save (`megalith train`). Others get the signals themselves.
  bool ranks_save = false;
  std::string secret{};  // of the run's store, for all its machines; empty: 32 random bytes, where this is the only one
  double grace = 30.0;   // seconds from SIGTERM to SIGKILL for those that one failure ends
  std::FILE* output = stdout;
  std::FILE* errors = stderr;
};

// Runs the command once per rank of this machine and returns when all have ended. Each sees RANK, LOCAL_RANK,
// WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and inherits a line to this process
// (core/process/launcher_line.h); each line it writes comes out as "[rank] line". When one fails the others are ended,
// and `errors` hears which one and why, unless it was a user's mistake, which the rank has explained.
//
// Stop signals (core/process/stop_signals.h) sent to this process go to every rank. Ranks that save are asked to stop
// once, over their lines, however many signals reach this process or them; before they train they are ended at once. A
// second SIGINT to this process, a second or more after the first, ends them without saving.
//
// The exit code to answer: 0 when all ranks ended with 0; 75 when with 0 or 75, or when they were stopped before they
// trained; otherwise that of the rank that failed first (of one that only lost another: that of one that knows why),
// 128 + the signal for one that a signal ended, 130 after a second SIGINT. To be called from the main thread of a
// process without others that handle these signals: they are held back meanwhile. User error for a command that cannot
// be run and for a master port of this machine that is taken.
int launch_local(const LocalLaunch& launch);

}  // namespace megalith::launch
