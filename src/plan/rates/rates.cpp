#include "plan/rates/rates.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "config/scalar.h"
#include "core/error.h"
#include "h200_csv.h"
#include "plan/step_time/csv.h"

namespace megalith::plan {

namespace {

constexpr size_t kNeighbours = 3;
// Another kind of GEMM (transposed, with an epilogue) is as far as a size of e times.
constexpr double kOtherForm = 1.0;
constexpr double kNearest = 0.01;  // keeps weights finite
constexpr double kKernelStart = 3e-6;
constexpr double kMicro = 1e-6;

struct Shape {
  std::string form;
  std::vector<double> log_sizes;
};

// "bf16 8192x50304x768 nt" is the form "bf16 #x#x# nt" of three sizes: the first word is a type.
Shape shape_of(const std::string& text) {
  Shape shape;
  size_t at = std::min(text.find(' '), text.size());
  if (at < text.size() && std::isdigit(static_cast<unsigned char>(text[0])) != 0) at = 0;
  shape.form = text.substr(0, at);
  while (at < text.size()) {
    if (std::isdigit(static_cast<unsigned char>(text[at])) == 0) {
      shape.form += text[at++];
      continue;
    }
    double size = 0.0;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0)
      size = 10 * size + (text[at++] - '0');
    shape.form += '#';
    shape.log_sizes.push_back(std::log(std::max(1.0, size)));
  }
  return shape;
}

double work_of(double flops, double bytes) {
  return flops > 0 ? flops : bytes;
}

double number(const Csv& csv, const Csv::Record& record, std::string_view column, const std::string& file) {
  const std::string& cell = record.cells[static_cast<size_t>(csv.find(column))];
  const auto value = config::read_double(cell);
  if (!value || *value < 0)
    user_error("{}, line {}, column {}: '{}' is not a number from 0", file, record.line, column, cell);
  return *value;
}

}  // namespace

void Rates::add(std::string_view text, const std::string& file) {
  const Csv csv = parse_csv(text, file);
  for (const char* column : {"operation", "shape", "microseconds", "flops", "bytes"}) {
    if (csv.find(column) < 0) user_error("{} has no column '{}': give what `bench step --csv` wrote", file, column);
  }
  for (const Csv::Record& record : csv.records) {
    const double seconds = kMicro * number(csv, record, "microseconds", file);
    if (seconds <= 0) user_error("{}, line {}, column microseconds: a time must be above 0", file, record.line);
    const std::string& shape = record.cells[static_cast<size_t>(csv.find("shape"))];
    const double work = work_of(number(csv, record, "flops", file), number(csv, record, "bytes", file));
    std::vector<Rate>& of_operation = rates_[record.cells[static_cast<size_t>(csv.find("operation"))]];
    const auto same =
        std::find_if(of_operation.begin(), of_operation.end(), [&](const Rate& rate) { return rate.shape == shape; });
    if (same == of_operation.end()) {
      Shape sizes = shape_of(shape);
      of_operation.push_back({.shape = shape,
                              .form = std::move(sizes.form),
                              .log_sizes = std::move(sizes.log_sizes),
                              .work = work,
                              .seconds = seconds});
    } else {
      same->seconds += (seconds - same->seconds) / static_cast<double>(++same->files);
    }
  }
}

OperationTime Rates::time_of(const std::string& operation, const ops::OpCost& cost) const {
  const auto found = rates_.find(operation);
  if (found == rates_.end()) return {};
  const Shape shape = shape_of(cost.shape);
  struct Neighbour {
    double distance;
    double seconds_of_work;
  };
  std::vector<Neighbour> neighbours;
  for (const Rate& rate : found->second) {
    if (rate.shape == cost.shape) return {rate.seconds, Known::measured};
    if (rate.work <= 0) continue;
    double distance = rate.form == shape.form ? 0.0 : kOtherForm;
    for (size_t i = 0; i < std::min(shape.log_sizes.size(), rate.log_sizes.size()); ++i)
      distance += std::pow(shape.log_sizes[i] - rate.log_sizes[i], 2);
    neighbours.push_back({distance, rate.seconds / rate.work});
  }
  const double work = work_of(cost.flops, cost.bytes);
  // What hardly does anything takes the time to start it.
  if (neighbours.empty()) return {found->second.front().seconds, Known::interpolated};
  const size_t kept = std::min(kNeighbours, neighbours.size());
  std::partial_sort(neighbours.begin(), neighbours.begin() + static_cast<std::ptrdiff_t>(kept), neighbours.end(),
                    [](const Neighbour& a, const Neighbour& b) { return a.distance < b.distance; });
  double weights = 0.0;
  double sum = 0.0;
  for (size_t i = 0; i < kept; ++i) {
    const double weight = 1 / (neighbours[i].distance + kNearest);
    weights += weight;
    sum += weight * neighbours[i].seconds_of_work;
  }
  return {std::max(kKernelStart, work * sum / weights), Known::interpolated};
}

Rates Rates::of_h200() {
  Rates rates;
  rates.add(kH200Rates, "the rates of the H200 that ship");
  return rates;
}

}  // namespace megalith::plan
