#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op_cost.h"

namespace megalith::plan {

// Seconds of an operation, and how they are known.
enum class Known { measured, interpolated, assumed };
struct OperationTime {
  double seconds = 0.0;
  Known known = Known::assumed;
  // What it is taken from computes with 16 bits and this with 8, or without dropout and this with, or the other way
  // round.
  bool of_other_format = false;
};

// Whether operands are bytes, of an operation's shape.
bool is_fp8(const std::string& shape);
// Whether attention draws what it drops, which needs other kernels, of its shape.
bool has_dropout(const std::string& shape);

// What rates were measured with; empty where a file does not say.
struct RatesOrigin {
  std::string device;   // as the driver calls it
  std::string driver;   // its version
  std::string program;  // the version and commit of Megalith

  bool operator==(const RatesOrigin&) const = default;
};

// How fast one kind of GPU runs Megalith's operations: what `bench step --csv` wrote. An operation of a shape that was
// measured takes that time; another the rate of the nearest shapes of its kind.
class Rates {
 public:
  // A user error, with the line, for a file of other columns, a time that is not above 0, or a GPU, a driver or a
  // program other than that of the lines before.
  void add(std::string_view csv, const std::string& file);
  bool empty() const { return rates_.empty(); }
  const RatesOrigin& origin() const { return origin_; }
  const std::vector<std::string>& files() const { return files_; }

  // Seconds are 0 where no such operation was measured. Operands of the same format come first.
  OperationTime time_of(const std::string& operation, const ops::OpCost& cost) const;

  // What ships, of an H200.
  static Rates of_h200();

 private:
  struct Rate {
    std::string shape;
    std::string form;  // the shape without its sizes
    std::vector<double> log_sizes;
    bool fp8 = false;  // its operands
    bool drops = false;
    double work = 0.0;  // FLOPs, or bytes where there are none
    double seconds = 0.0;
    int64_t files = 1;  // that the mean is over
  };

  void take_origin(const RatesOrigin& origin, const std::string& file, int64_t line);

  std::map<std::string, std::vector<Rate>> rates_;  // by operation
  RatesOrigin origin_;
  std::string origin_file_;  // that said so first
  std::vector<std::string> files_;
};

}  // namespace megalith::plan
