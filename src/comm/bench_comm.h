#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace megalith::comm {

struct CommBench {
  int64_t least_bytes = 8;
  int64_t most_bytes = 64 << 20;
  int factor = 8;        // from one size to the next
  double seconds = 0.5;  // to spend on each operation and size, about
  DType dtype = DType::f32;
};

// One operation at one size, as the slowest member saw it.
struct CommTiming {
  Operation operation = Operation::all_reduce;
  int64_t bytes = 0;              // that each member puts in
  double seconds = 0.0;           // of one call
  double bytes_per_second = 0.0;  // that each member's link carried at least (wire_bytes)
};

// Measures every operation of the group. Every member calls it; all get the same answer.
std::vector<CommTiming> bench_comm(Communicator& group, Stream& stream, const CommBench& bench = {});

// A table for people.
std::string describe(const std::vector<CommTiming>& timings, int members);
// The same as CSV, with the number of machines that the members are on. Files of several groups, one behind the other,
// describe a cluster.
std::string to_csv(const std::vector<CommTiming>& timings, int members, int machines);

}  // namespace megalith::comm
