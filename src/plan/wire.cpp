#include "plan/wire.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "config/scalar.h"
#include "core/error.h"
#include "core/file.h"
#include "plan/step_time/csv.h"

namespace megalith::plan {

namespace {

using comm::Link;
using comm::LinkKind;

// What calls reach of the links' data sheets, and what each costs before it moves anything: as published runs on H100
// have it (docs/planning.md). Not the planner's fitted constants: what was measured over a wire stays comparable when
// those are fitted anew.
constexpr double kLinkShare = 0.78;
constexpr double kNetworkShare = 0.72;
constexpr double kLinkCallSeconds = 12e-6;
constexpr double kNetworkCallSeconds = 15e-6;
constexpr double kHopSeconds = 6.5e-6;
// NCCL's blocks, as its log tells them on machines of 8 H100: "16 coll channels, 16 p2p channels per peer", and 2 per
// peer on another machine.
constexpr int kBlocks = 16;
constexpr int kNetworkMessageBlocks = 2;

comm::Wire wire_of(const cost::Accelerator& accelerator, const cost::Network& network) {
  return {.name = accelerator.name + "+" + network.name,
          .ranks_per_machine = static_cast<int>(accelerator.domain),
          .links = {Link{.bytes_per_second = accelerator.link_gb_s * 1e9 * kLinkShare,
                         .call_seconds = kLinkCallSeconds,
                         .blocks = kBlocks,
                         .message_blocks = kBlocks},
                    Link{.bytes_per_second = network.gbit_per_gpu * 1e9 / 8 * kNetworkShare,
                         .call_seconds = kNetworkCallSeconds,
                         .hop_seconds = kHopSeconds,
                         .blocks = kBlocks,
                         .message_blocks = kNetworkMessageBlocks}}};
}

// A record of the file, whose numbers are not yet looked at.
class Reader {
 public:
  Reader(const Csv& csv, const std::string& file) : csv_(csv), file_(file) {
    for (const std::string_view column : {"ranks", "machines", "operation", "bytes", "microseconds"}) {
      if (csv.find(column) < 0)
        user_error("{} has no column '{}': it is no file of `megalith bench comm --csv`", file, column);
    }
  }

  comm::MeasuredCall read(const Csv::Record& record) const {
    const double microseconds = number(record, "microseconds");
    if (microseconds <= 0.0) user_error("{}, line {}: a call takes more than 0 microseconds", file_, record.line);
    return {.operation = operation(record),
            .members = static_cast<int>(count(record, "ranks", 2)),
            .machines = static_cast<int>(count(record, "machines", 1)),
            .bytes = count(record, "bytes", 0),
            .seconds = microseconds * 1e-6};
  }

  const std::string& cell(const Csv::Record& record, std::string_view column) const {
    return record.cells[static_cast<size_t>(csv_.find(column))];
  }

 private:
  double number(const Csv::Record& record, std::string_view column) const {
    const std::string& text = cell(record, column);
    const auto value = config::read_double(text);
    if (!value) user_error("{}, line {}: {} is a number, not '{}'", file_, record.line, column, text);
    return *value;
  }

  int64_t count(const Csv::Record& record, std::string_view column, int64_t least) const {
    const std::string& text = cell(record, column);
    const auto value = config::read_int(text);
    constexpr int64_t kMost = int64_t{1} << 40;
    if (!value || *value < least || *value > kMost)
      user_error("{}, line {}: {} is a whole number from {}, not '{}'", file_, record.line, column, least, text);
    return *value;
  }

  comm::Operation operation(const Csv::Record& record) const {
    const std::string& text = cell(record, "operation");
    for (int i = 0; i < comm::kOperations; ++i) {
      if (comm::name_of(static_cast<comm::Operation>(i)) == text) return static_cast<comm::Operation>(i);
    }
    user_error("{}, line {}: there is no operation '{}'", file_, record.line, text);
  }

  const Csv& csv_;
  const std::string& file_;
};

}  // namespace

comm::Wire parse_wire(std::string_view text, const std::string& file) {
  const Csv csv = parse_csv(text, file);
  const Reader reader(csv, file);
  std::vector<comm::MeasuredCall> calls;
  for (const Csv::Record& record : csv.records) {
    // The heading of a file behind another.
    if (reader.cell(record, "ranks") == "ranks") continue;
    calls.push_back(reader.read(record));
  }
  if (calls.empty()) user_error("{} has no call: it is no file of `megalith bench comm --csv`", file);
  comm::Wire wire = comm::measured_wire(file, std::move(calls));
  for (Link& link : wire.links) {
    link.blocks = kBlocks;
    link.message_blocks = kBlocks;
  }
  wire.link(LinkKind::between).message_blocks = kNetworkMessageBlocks;
  check_wire(wire);
  return wire;
}

comm::Wire read_wires(const std::vector<std::string>& files) {
  std::vector<comm::MeasuredCall> calls;
  for (const std::string& file : files) {
    const comm::Wire wire = parse_wire(read_text(file), file);
    calls.insert(calls.end(), wire.measured.begin(), wire.measured.end());
  }
  return comm::measured_wire(fmt::format("{}", fmt::join(files, ", ")), std::move(calls));
}

comm::Wire find_wire(const std::string& name_or_file, const cost::Hardware& hardware) {
  if (std::filesystem::exists(name_or_file)) return parse_wire(read_text(name_or_file), name_or_file);
  if (name_or_file.find('/') != std::string::npos || name_or_file.ends_with(".csv"))
    user_error("there is no file '{}'", name_or_file);
  const size_t plus = name_or_file.find('+');
  const cost::Accelerator& accelerator = hardware.accelerator(name_or_file.substr(0, plus));
  comm::Wire wire = wire_of(
      accelerator, hardware.network(plus == std::string::npos ? std::string_view(accelerator.network)
                                                              : std::string_view(name_or_file).substr(plus + 1)));
  check_wire(wire);
  return wire;
}

}  // namespace megalith::plan
