#include <string_view>

#include "control.pb.h"
#include "resilience/grpc/wire.h"
#include "resilience/sense/sensor.h"

using namespace megalith::resilience;

namespace {
// A run of two nodes, one of which says what the fuzzer makes up.
RunState running() {
  RunState state;
  state.phase = RunPhase::running;
  state.roster = Roster{.run = "run",
                        .generation = 2,
                        .world_size = 4,
                        .ranks_per_node = 2,
                        .nodes = {{.node = "a", .index = 0}, {.node = "b", .index = 1}},
                        .store_node = "a"};
  for (const char* node : {"a", "b"}) state.nodes[node] = {.boot_id = "boot", .is_heard = true};
  return state;
}
}  // namespace

// A report is taken or refused, what was taken comes back the same, and the sensor can be told anything.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::optional<Report> report = report_of(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!report) return 0;
  megalith::control::Report wire;
  write_to(*report, wire);
  if (!report_of(wire.SerializeAsString())) __builtin_trap();

  const RunState state = running();
  Sensor sensor(state);
  std::vector<Fact> facts;
  report->header.sender = "a";
  report->header.sequence = 1;
  report->header.generation = 2;
  for (RankReport& rank : report->ranks) rank.generation = 2;
  sensor.take(*report, 100.0, facts);
  for (const double now : {100.0, 101.0, 200.0, 1000.0}) sensor.look(now, facts);
  return 0;
}
