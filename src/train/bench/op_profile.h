#pragma once

#include <string>
#include <vector>

#include "ops/op.h"
#include "plan/rehearsal.h"

namespace megalith::train {

// Where the time of some work goes, operation by operation, each measured alone.
struct OpLine {
  std::string name;
  ops::OpCost cost;  // of one call
  int64_t calls = 0;
  double seconds = 0.0;  // of one call, the median of many in a row
};

// Hears every operation of `body`, then runs the calls of each distinct one again and again on the memory of each,
// whose contents it leaves as garbage.
std::vector<OpLine> profile_ops(Stream& stream, const std::function<void()>& body);

// The least time that a rehearsed step could take: products and attention as fast as `lines` have each alone, all else
// at the rate of a copy.
double floor_seconds(const plan::StepWork& work, const std::vector<OpLine>& lines, double copy_bytes_per_second);
double sum_of_seconds(const std::vector<OpLine>& lines);

// Bytes read and written per second when a large tensor is copied.
double copy_rate(Stream& stream, const Tensor& memory);

// What operations were measured with.
struct ProfileOrigin {
  std::string device;
  std::string driver;
  std::string program;  // program_version()
};

// One line per operation, the longest first; and the same as CSV, each line with its origin.
std::string to_table(const std::vector<OpLine>& lines, double copy_bytes_per_second);
std::string to_csv(const std::vector<OpLine>& lines, double copy_bytes_per_second, const ProfileOrigin& origin);

}  // namespace megalith::train
