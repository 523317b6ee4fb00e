#include <string_view>

#include "resilience/grpc/wire.h"
#include "resilience/monitor/monitor_logic.h"

using namespace megalith::resilience;

namespace {
// A node that does nothing, and traps where it is asked to do what no order may ask for.
class Host final : public NodeHost {
 public:
  int64_t newest_term() const override { return 3; }
  std::optional<Roster> newest_roster() const override {
    return Roster{.run = "run",
                  .generation = 2,
                  .world_size = 2,
                  .ranks_per_node = 1,
                  .nodes = {{.node = "a", .index = 0}, {.node = "b", .index = 1}},
                  .store_node = "a"};
  }
  std::vector<RankReport> processes(bool) override { return {}; }
  void start_rank(const Roster&, int64_t rank, const Place&, const std::vector<Holder>&) override {
    if (rank != 0) __builtin_trap();
  }
  Place serve_store(const Roster&) override { return {}; }
  void kill_up_to(int64_t) override { must_be_of_newest_term(); }
  bool is_clear_of(int64_t) override { return true; }
  void ask_to_stop(int64_t) override { must_be_of_newest_term(); }
  std::vector<Holding> holdings() override { return {}; }
  Place holder_place() override { return {}; }
  CheckOutcome check(std::string&) override { return CheckOutcome::ok; }

  int64_t term = 0;  // of the order that is carried out

 private:
  void must_be_of_newest_term() const {
    if (term < newest_term()) __builtin_trap();
  }
};
}  // namespace

// An order is taken or refused, what was taken comes back the same, and a monitor can be told anything.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::optional<Order> order = order_of(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!order) return 0;
  const std::optional<Order> again = order_of(bytes_of(*order));
  if (!again) __builtin_trap();
  if (!(*again == *order)) __builtin_trap();
  Host host;
  MonitorLogic logic({.run = "run", .node = "a", .address = "127.0.0.1", .boot_id = "boot", .session = 1}, host);
  order->header.run = "run";
  host.term = order->header.term;
  logic.take(*order);
  logic.poll();
  logic.report();
  return 0;
}
