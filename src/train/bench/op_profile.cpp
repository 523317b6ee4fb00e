#include "train/bench/op_profile.h"

#include <algorithm>
#include <map>

namespace megalith::train {

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

using Runs = std::vector<std::function<void(Stream&)>>;

// Seconds of one call: runs of several calls each, so that starting one does not count, for long enough that the card
// is as warm as in training. Calls that are alike take turns, as they do in a step: none finds its data near because it
// has just had it, and memory that happens to lie badly counts no more than it does there.
double seconds_alone(Stream& stream, const Runs& alike) {
  constexpr int kRuns = 7;
  constexpr double kSecondsPerRun = 0.02;
  size_t next = 0;
  const auto time = [&](int64_t calls) {
    StreamMark begin;
    StreamMark end;
    begin.record(stream);
    for (int64_t i = 0; i < calls; ++i) alike[next++ % alike.size()](stream);
    end.record(stream);
    end.wait();
    return StreamMark::seconds_between(begin, end) / static_cast<double>(calls);
  };
  time(1);
  const double rough = time(3);
  const auto calls = std::clamp<int64_t>(static_cast<int64_t>(kSecondsPerRun / std::max(rough, 1e-7)), 2, 200);
  std::vector<double> seconds;
  for (int i = 0; i < kRuns; ++i) seconds.push_back(time(calls));
  return median(seconds);
}

double floor_of_call(const OpLine& line, double copy_bytes_per_second) {
  return line.cost.kind == ops::OpKind::memory ? line.cost.bytes / copy_bytes_per_second : line.seconds;
}

}  // namespace

std::vector<OpLine> profile_ops(Stream& stream, const std::function<void()>& body) {
  struct Heard {
    OpLine line;
    Runs calls;
  };
  std::map<std::string, Heard> distinct;
  {
    const ops::OpObservation observation(stream, [&](const ops::OpCall& call) {
      Heard& heard = distinct[fmt::format("{} {}", call.name, call.cost.shape)];
      if (heard.calls.empty()) heard.line = {.name = call.name, .cost = call.cost};
      ++heard.line.calls;
      heard.calls.push_back(call.run);
    });
    body();
    stream.wait();
  }
  // Products and attention first, while memory still holds what training left there: an operation that works in place
  // turns its data into zeros when it is repeated, and products of zeros are fast.
  std::vector<OpLine> lines;
  for (const bool memory_bound : {false, true}) {
    for (auto& [key, heard] : distinct) {
      if ((heard.line.cost.kind == ops::OpKind::memory) != memory_bound) continue;
      heard.line.seconds = seconds_alone(stream, heard.calls);
      lines.push_back(heard.line);
    }
  }
  const auto total = [](const OpLine& line) { return static_cast<double>(line.calls) * line.seconds; };
  std::sort(lines.begin(), lines.end(), [&](const OpLine& a, const OpLine& b) { return total(a) > total(b); });
  return lines;
}

double floor_seconds(const plan::StepWork& work, const std::vector<OpLine>& lines, double copy_bytes_per_second) {
  double sum = 0.0;
  for (const plan::StepWork::Operation& operation : work.operations) {
    const auto line = std::find_if(lines.begin(), lines.end(), [&](const OpLine& one) {
      return one.name == operation.name && one.cost.shape == operation.cost.shape;
    });
    MEGALITH_CHECK(line != lines.end(), "{} {} is rehearsed, but no step ran it", operation.name, operation.cost.shape);
    sum += static_cast<double>(operation.calls) * floor_of_call(*line, copy_bytes_per_second);
  }
  return sum;
}

double sum_of_seconds(const std::vector<OpLine>& lines) {
  double sum = 0.0;
  for (const OpLine& line : lines) sum += static_cast<double>(line.calls) * line.seconds;
  return sum;
}

double copy_rate(Stream& stream, const Tensor& memory) {
  const int64_t half = memory.elements() / 2;
  const Tensor from(memory.data, memory.dtype, {half}, memory.device);
  const Tensor to(static_cast<std::byte*>(memory.data) + from.bytes(), memory.dtype, {half}, memory.device);
  const double seconds = seconds_alone(stream, {[&](Stream& on) { copy(on, from, to); }});
  return 2.0 * static_cast<double>(from.bytes()) / seconds;
}

std::string to_table(const std::vector<OpLine>& lines, double copy_bytes_per_second) {
  std::string text = fmt::format("  {:<20} {:<64} {:>5} {:>9} {:>9} {:>9} {:>7}\n", "operation", "shape", "calls",
                                 "ms each", "ms all", "TFLOPS", "% copy");
  for (const OpLine& line : lines) {
    const bool memory = line.cost.kind == ops::OpKind::memory;
    text += fmt::format(
        "  {:<20} {:<64} {:>5} {:>9.4f} {:>9.3f} {:>9} {:>7}\n", line.name, line.cost.shape, line.calls,
        line.seconds * 1e3, static_cast<double>(line.calls) * line.seconds * 1e3,
        memory ? "" : fmt::format("{:.1f}", line.cost.flops / line.seconds / 1e12),
        memory ? fmt::format("{:.1f}", 100.0 * floor_of_call(line, copy_bytes_per_second) / line.seconds) : "");
  }
  return text;
}

std::string to_csv(const std::vector<OpLine>& lines, double copy_bytes_per_second, const ProfileOrigin& origin) {
  std::string text =
      "operation,shape,calls,microseconds,flops,bytes,tflops,gigabytes_per_second,percent_of_copy_rate,device,driver,"
      "program\n";
  for (const OpLine& line : lines) {
    const double rate = line.cost.bytes / line.seconds;
    text += fmt::format("{},\"{}\",{},{:.3f},{:.6e},{:.6e},{:.2f},{:.1f},{:.1f},{},{},{}\n", line.name, line.cost.shape,
                        line.calls, line.seconds * 1e6, line.cost.flops, line.cost.bytes,
                        line.cost.flops / line.seconds / 1e12, rate / 1e9, 100.0 * rate / copy_bytes_per_second,
                        origin.device, origin.driver, origin.program);
  }
  return text;
}

}  // namespace megalith::train
