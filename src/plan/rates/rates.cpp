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
// What took no longer was mostly start, and tells no rate.
constexpr double kMostlyStart = 3 * kKernelStart;
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

bool is_fp8(const std::string& shape) {
  return shape.starts_with("e4m3") || shape.starts_with("e5m2");
}

bool has_dropout(const std::string& shape) {
  return shape.find(", dropout") != std::string::npos;
}

void Rates::take_origin(const RatesOrigin& origin, const std::string& file, int64_t line) {
  if (origin == RatesOrigin{} || origin == origin_) return;
  if (origin_ == RatesOrigin{}) {
    origin_ = origin;
    origin_file_ = file;
    return;
  }
  const auto same = [&](const char* what, const std::string& before, const std::string& now) {
    if (before != now)
      user_error("{}, line {}: measured {} '{}', and {} {} '{}': give files of one GPU, driver and program", file, line,
                 what, now, origin_file_, what, before);
  };
  same("on", origin_.device, origin.device);
  same("with the driver", origin_.driver, origin.driver);
  same("by", origin_.program, origin.program);
}

void Rates::add(std::string_view text, const std::string& file) {
  const Csv csv = parse_csv(text, file);
  for (const char* column : {"operation", "shape", "microseconds", "flops", "bytes"}) {
    if (csv.find(column) < 0) user_error("{} has no column '{}': give what `bench step --csv` wrote", file, column);
  }
  if (csv.records.empty()) user_error("{} has no operation: give what `bench step --csv` wrote on a GPU", file);
  files_.push_back(file);
  const auto cell_or_nothing = [&](const Csv::Record& record, std::string_view column) {
    const int64_t place = csv.find(column);
    return place < 0 ? std::string() : record.cells[static_cast<size_t>(place)];
  };
  for (const Csv::Record& record : csv.records) {
    take_origin({.device = cell_or_nothing(record, "device"),
                 .driver = cell_or_nothing(record, "driver"),
                 .program = cell_or_nothing(record, "program")},
                file, record.line);
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
                              .fp8 = is_fp8(shape),
                              .drops = has_dropout(shape),
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
  const std::vector<Rate>& measured = found->second;
  const auto same =
      std::find_if(measured.begin(), measured.end(), [&](const Rate& rate) { return rate.shape == cost.shape; });
  if (same != measured.end()) return {same->seconds, Known::measured};
  const auto same_format = [fp8 = is_fp8(cost.shape), drops = has_dropout(cost.shape)](const Rate& rate) {
    return rate.fp8 == fp8 && rate.drops == drops;
  };
  const bool has_format = std::any_of(measured.begin(), measured.end(), same_format);
  const Shape shape = shape_of(cost.shape);
  std::vector<std::pair<double, const Rate*>> neighbours;  // by distance
  for (const Rate& rate : measured) {
    if (has_format && !same_format(rate)) continue;
    double distance = rate.form == shape.form ? 0.0 : kOtherForm;
    for (size_t i = 0; i < std::min(shape.log_sizes.size(), rate.log_sizes.size()); ++i)
      distance += std::pow(shape.log_sizes[i] - rate.log_sizes[i], 2);
    neighbours.emplace_back(distance, &rate);
  }
  std::stable_sort(neighbours.begin(), neighbours.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const double work = work_of(cost.flops, cost.bytes);
  const Rate& nearest = *neighbours.front().second;
  std::erase_if(neighbours, [](const auto& neighbour) {
    return neighbour.second->work <= 0 || neighbour.second->seconds <= kMostlyStart;
  });
  if (neighbours.empty()) {
    const double more = nearest.work > 0 ? std::max(1.0, work / nearest.work) : 1.0;
    return {nearest.seconds * more, Known::interpolated, !has_format};
  }
  double weights = 0.0;
  double sum = 0.0;
  for (size_t i = 0; i < std::min(kNeighbours, neighbours.size()); ++i) {
    const auto& [distance, rate] = neighbours[i];
    const double weight = 1 / (distance + kNearest);
    weights += weight;
    sum += weight * rate->seconds / rate->work;
  }
  return {std::max(kKernelStart, work * sum / weights), Known::interpolated, !has_format};
}

Rates Rates::of_h200() {
  Rates rates;
  rates.add(kH200Rates, "the rates of the H200 that ship");
  return rates;
}

}  // namespace megalith::plan
