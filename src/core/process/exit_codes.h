#pragma once

#include <array>

namespace megalith {

// What the process answers (docs/design.md, section 7). Where ranks answer differently, srun takes the largest: a rank
// that lost another answers less than the one that knows why, and no failure hides 70 or 75.
constexpr int kExitComplete = 0;
constexpr int kExitInternal = 1;       // a bug, or an end that no code tells: a signal, no memory
constexpr int kExitWrongInput = 2;     // running again will not help
constexpr int kExitRankLost = 3;       // another rank failed or did not arrive
constexpr int kExitNonFinite = 4;      // a loss or a gradient
constexpr int kExitIo = 5;             // storage or another service of the machine
constexpr int kExitDevice = 6;         // an accelerator or its driver
constexpr int kExitGivenUp = 70;       // by a supervisor
constexpr int kExitStoppedEarly = 75;  // saved; run again to continue
constexpr int kExitInterrupted = 130;  // a second SIGINT, nothing saved

inline constexpr std::array kExitCodes = {kExitComplete,     kExitInternal,   kExitWrongInput, kExitRankLost,
                                          kExitNonFinite,    kExitIo,         kExitDevice,     kExitGivenUp,
                                          kExitStoppedEarly, kExitInterrupted};

}  // namespace megalith
