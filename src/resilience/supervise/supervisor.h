#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "resilience/decide/controller.h"
#include "resilience/record/journal.h"
#include "resilience/sense/sensor.h"
#include "resilience/supervise/actuator.h"
#include "resilience/supervise/succession.h"

namespace megalith::resilience {

// Guards that only tests of the simulation take out, to see that an invariant then breaks.
struct SupervisorGuards {
  ControllerGuards controller;
  SensorGuards sensor;
  bool journals_every_fact = true;
};

struct SupervisorIdentity {
  std::string boot_id;
  Actuator::Alarm alarm = [](const std::string&) {};
  bool is_new_fleet = false;  // nothing of it ran any longer when this process began
};

// Sensor, controller and actuator of one leader, without sockets, threads and clocks: whoever owns it calls poll() when
// messages have come, and at least every 100 ms. A journal that cannot be written any longer ends the term: the next
// one is taken as soon as the run directory answers, and until then the run trains on alone.
class Supervisor {
 public:
  Supervisor(Settings settings, SupervisorIdentity identity, ControlDirectory& directory,
             SupervisorTransport& transport, const SupervisorGuards& guards = {});

  // Data error by name where what earlier supervisors left cannot be read. Comm error where another one leads by now:
  // then this one must end.
  void poll(const Moment& now);
  void request_stop(double grace_seconds, const std::string& who);

  bool leads() const { return leadership_ != nullptr; }
  // Where it leads.
  const RunState& state() const { return leadership_->state; }
  // Once the verdict has reached the nodes: how this process ends.
  std::optional<int64_t> exit_code() const;
  int64_t refused() const { return refused_; }
  // Why it does not lead, where it does not.
  const std::string& problem() const { return problem_; }

 private:
  struct Leadership {
    Leadership(Journal its_journal, RunState its_state, double its_offset, Supervisor& owner);
    Journal journal;
    RunState state;
    double offset;  // of the run's axis from the monotonic clock
    Sensor sensor;
    Actuator actuator;
  };

  void try_to_lead(const Moment& now);
  void end_if_overtaken() const;
  bool is_for_us(const Report& report);
  void hear(const Report& report, double now, std::vector<Fact>& facts);
  void take(std::vector<Fact> facts, const Moment& now);

  Settings settings_;
  SupervisorIdentity identity_;
  ControlDirectory& directory_;
  SupervisorTransport& transport_;
  SupervisorGuards guards_;
  std::unique_ptr<Leadership> leadership_;
  double tries_again_ = 0.0;  // monotonic seconds
  double looked_ = -1.0;      // on the run's axis
  double polled_ = -1.0;      // monotonic seconds
  std::optional<Fact> wish_;  // to stop, not yet taken
  int64_t refused_ = 0;
  std::set<std::string> refused_senders_;  // that were named
  std::string problem_;
};

}  // namespace megalith::resilience
