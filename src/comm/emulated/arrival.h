#pragma once

#include "comm/emulated/arrival_work.h"
#include "comm/emulated/medium.h"
#include "comm/emulated/noise.h"

namespace megalith::comm {

// What a call brings where there is nobody else. Every other member does for this rank what this rank does for it: it
// gathers from each what it has given, adds to its own piece of a sum what it has put in for the others, and each adds
// to a common sum what it did. So values have the type and the size of a real run's, sums of positive numbers stay
// positive, and all agree on what is talked about: a broadcast brings what is there. Messages have no such counterpart:
// they bring random normal values.
struct Arrival {
  Copies copies{};
  bool reduces = false;
  ReduceWork reduction{};
};
Arrival arrival_of(Stream& stream, const EmulatedCall& emulated, Noise& noise);

// On the CPU.
void carry_out(const Arrival& arrival, DType dtype);

}  // namespace megalith::comm
