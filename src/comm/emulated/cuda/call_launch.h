#pragma once

#include "comm/emulated/arrival_work.h"

namespace megalith::comm::cuda {

// How many parts of its work a call does one after the other, at the pace of the wire.
constexpr int kSlices = 16;
constexpr int kLinks = 2;

// How long a call takes. Its kernel counts itself among the calls that use a link while it has bytes left there, and
// gets an equal share of it.
struct CallTiming {
  // How far the calls of the lane have come: number x (kSlices + 1) + slices. Calls are numbered from 1.
  unsigned long long* progress;
  unsigned long long number;
  unsigned long long latency_ns;
  // It ends no earlier than so long after the mark; null: no mark matters.
  const unsigned long long* mark;
  unsigned long long arrival_ns;
  struct Link {
    unsigned int* active;  // calls under way on it
    double bytes;
    double bytes_per_ns;
  };
  Link links[kLinks];
};

// Writes the device's time when the stream comes past it. A cudaError_t, as are those below.
int launch_mark(unsigned long long* mark, void* stream);
// Each on a stream, as so many blocks that nothing with much shared memory runs beside on their multiprocessors, until
// the call is over.
int launch_copies(const CallTiming& timing, const Copies& copies, int blocks, void* stream);
int launch_reduce(const CallTiming& timing, const ReduceWork& work, int blocks, void* stream);

}  // namespace megalith::comm::cuda
