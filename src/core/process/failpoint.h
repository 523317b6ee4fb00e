#pragma once

#include <string>
#include <string_view>

namespace megalith {

// Named places where a fault can be asked for, so that tests and drills take the road that a real fault takes.
// Off, a failpoint costs one relaxed atomic load.

enum class FailAction { throw_io, exit, delay, sigterm };

// "checkpoint.write=io@3": fails the third time the place is passed. Actions: io (throws an I/O error), exit (ends the
// process at once, status 1), delay (sleeps 100 ms), sigterm (the process sends itself SIGTERM). Without "@n" it acts
// every time. Throws a user error on bad text.
void arm_failpoint(std::string_view text);
void disarm_failpoints();

void pass_failpoint(const char* place);

}  // namespace megalith
