#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "resilience/messages.h"
#include "resilience/record/roster.h"

namespace megalith::resilience {

// What a monitor can do to its node and learn of it. The monitor process does it for real, the simulation pretends. A
// call that fails throws an Error; it becomes the reason of a failed order.
class NodeHost {
 public:
  virtual ~NodeHost() = default;

  // The run directory. I/O error while it cannot be read: then no order is carried out that needs it.
  virtual int64_t newest_term() const = 0;
  virtual std::optional<Roster> newest_roster() const = 0;

  // This run's processes on this node, started by this monitor or adopted (same pid, start time and generation, with a
  // status page), also those that have ended, for as long as their generation is the newest here. A rank whose page is
  // there and whose process is gone without a status is one whose end is unknown.
  virtual std::vector<RankReport> processes(bool with_proc) = 0;

  // Starts what is not there: never a second process for a rank of a generation, also not for one that has ended.
  virtual void start_rank(const Roster& roster, int64_t rank, const Place& store,
                          const std::vector<Holder>& holders) = 0;
  virtual Place serve_store(const Roster& roster) = 0;

  // SIGKILL, through pidfds, to all that runs of these generations; does not wait.
  virtual void kill_up_to(int64_t generation) = 0;
  // Of these generations: no process is left, and the memory of their devices is free.
  virtual bool is_clear_of(int64_t generation) = 0;
  // By way of the ranks' pages: stop at the next step boundary. Also for ranks that come later in this generation.
  virtual void ask_to_stop(int64_t generation) = 0;

  virtual std::vector<Holding> holdings() = 0;
  virtual Place holder_place() = 0;  // who serves them; port 0: nobody
  virtual CheckOutcome check(std::string& evidence) = 0;
};

struct MonitorIdentity {
  std::string run;
  std::string node;
  std::string address;
  std::string boot_id;
  int64_t session = 0;  // higher than that of any earlier monitor process since the machine started
};

// A guard that only tests of the simulation take out, to see that its invariant then breaks.
struct MonitorGuards {
  bool refuses_old_terms = true;
};

// What a monitor thinks: which orders it carries out, and what it reports. It never restarts a rank on its own.
class MonitorLogic {
 public:
  MonitorLogic(MonitorIdentity identity, NodeHost& host, const MonitorGuards& guards = {});

  // An order has come. Carried out at most once, and only if it is of the newest term, newer than the last one, and
  // about the newest roster in the run directory; everything else is refused and counted.
  void take(const Order& order);
  // Call every 100 ms, and when a process has ended: goes on with an order that takes time (kill). True if a report
  // should leave at once.
  bool poll();
  // Seconds that the caller's loop came late, by its own clock.
  void overslept(double seconds) { overslept_ += seconds; }
  // A signal that asks the run to end.
  void request_stop(double grace_seconds);

  Report report();

  // Set by the order `finish` or `dismiss`: the monitor ends with this code.
  std::optional<int64_t> exit_code() const { return exit_code_; }
  int64_t refused() const { return refused_; }

 private:
  std::optional<std::string> why_refused(const Order& order);
  std::optional<Roster> ordered_roster(const Order& order, std::string& problem);
  void carry_out(const Order& order);
  void start(const Order& order);
  void serve_store(const Order& order);
  void answer(const Order& order, Outcome outcome, const std::string& reason = "");

  MonitorIdentity identity_;
  NodeHost& host_;
  MonitorGuards guards_;
  int64_t term_ = 0;           // highest heard of
  int64_t last_sequence_ = 0;  // carried out or refused for good, in that term
  int64_t generation_ = 0;     // of the newest roster seen
  int64_t sent_ = 0;
  int64_t refused_ = 0;
  double overslept_ = 0.0;
  std::optional<Order> killing_;  // waits until nothing is left
  std::optional<Result> result_;
  std::optional<Place> store_;
  int64_t store_generation_ = 0;
  std::optional<std::vector<Holding>> holdings_;
  CheckOutcome check_ = CheckOutcome::unknown;
  std::string check_evidence_;
  bool inspects_ = false;  // the next report says what /proc does
  bool reports_at_once_ = false;
  bool stop_requested_ = false;
  double stop_grace_ = 0.0;
  std::optional<int64_t> exit_code_;
};

}  // namespace megalith::resilience
