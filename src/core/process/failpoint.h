#pragma once

#include <cstdint>
#include <string_view>

namespace megalith {

// Named places where a fault can be asked for, so that tests and drills take the road that a real fault takes.
// Off, a failpoint costs one relaxed atomic load.

// "checkpoint.write=io@3": fails the third time the place is passed. "train.step=hang@step=7,rank=3,generation=2": when
// rank 3 of generation 2 passes it in its step 7. The conditions may be mixed, then only passings count at which the
// others hold; without any it acts every time. Several faults at one place act in the order in which they were armed.
//
//   io        throws an I/O error                 exit      ends the process at once, status 1
//   throw     throws an internal error            exit0     the same, status 0
//   delay     sleeps 100 ms                       abort     ends the process by SIGABRT
//   sleep=S   sleeps S seconds                    segv      ends the process by SIGSEGV
//   hang      sleeps for ever                     sigterm   the process sends itself SIGTERM
//   spin      computes for ever
//   kernel    passes, and says so: a place that can gives its device work that never ends
//
// All but delay and sleep say so on standard error first, with the monotonic time: a drill reads there when it struck.
// Throws a user error on bad text.
void arm_failpoint(std::string_view text);
// All of "place=action;place=action" whose place begins with `prefix`.
void arm_failpoints(std::string_view texts, std::string_view prefix = "");
void disarm_failpoints();

// What `rank`, `generation` and `step` are compared with: those of this process. Without a rank or a step no aim at one
// hits.
void set_failpoint_rank(int64_t rank, int64_t generation);
void set_failpoint_step(int64_t step);

// True where work without end is asked for.
bool pass_failpoint(const char* place);

}  // namespace megalith
