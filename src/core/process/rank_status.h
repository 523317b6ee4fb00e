#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"

namespace megalith {

// What a rank is at; each has a deadline of its own without a beat.
enum class Section : uint32_t { boot, rendezvous, load, plans, step, wait, save, validate, end };
constexpr int kSections = 9;
const char* name_of(Section section);

// What a rank tells whoever watches it, as read from its status page (status_page.h). Steps and numbers are -1 where
// there is none yet.
struct RankStatus {
  // Calls of one kind that a rank has made of a group.
  struct Calls {
    int64_t entered = 0;
    int64_t finished = 0;

    // Inside of one, which may be waiting for others.
    bool waits() const { return entered > finished; }
    bool operator==(const Calls&) const = default;
  };

  // A group of ranks, or another way to wait for ranks (to join, to save).
  struct Group {
    std::string name;
    uint64_t members = 0;   // digest of its ranks: pages with the same name and members speak of the same group
    int size = 0;           // ranks
    int member = 0;         // which of them this one is
    Calls collectives;      // every member makes the same ones: who has entered fewer is behind
    Calls exchanges;        // between some of the members: numbers mean nothing to others
    std::string operation;  // of the call entered last; empty: there was none
    int64_t bytes = 0;      // that this rank put into it
    std::array<int, 2> peers{-1, -1};  // ranks of the world for which it may wait, if it is an exchange: the first two

    bool waits() const { return collectives.waits() || exchanges.waits(); }
    bool operator==(const Group&) const = default;
  };

  enum class Outcome : uint32_t { complete, stopped_early, failed };
  struct Ending {
    Outcome outcome = Outcome::failed;
    ErrorKind kind = ErrorKind::internal;  // of a failure
    std::vector<int> ranks;                // of the world, that the error names; at most 16
    std::string message;                   // at most 512 bytes

    // Everything that was asked for is done or saved. A process that ends without has failed, whatever it returns.
    bool is_done() const { return outcome != Outcome::failed; }
    bool operator==(const Ending&) const = default;
  };

  std::string run;
  int64_t generation = 0;
  int rank = 0;
  pid_t pid = 0;             // 0: the rank has not opened the page
  uint64_t start_ticks = 0;  // of the process (process_facts.h)
  Section section = Section::boot;
  double section_began = 0.0;  // monotonic seconds of the rank's machine
  // Seconds that each section took at most; of save: that a persistent save did, with what it does beside training. 0:
  // it was not left yet.
  std::array<double, kSections> longest{};
  int64_t step = -1;             // being computed
  int64_t micro_batch = -1;      // within that step
  int64_t beats = 0;             // any change is a sign of life
  double working_seconds = 0.0;  // of the last timed step, without waiting for others; 0: none was timed
  int64_t local_step = -1;       // the newest that is durable on a local tier
  int64_t persistent_step = -1;  // and on the persistent one
  std::vector<Group> groups;
  std::optional<Ending> ending;
  bool stop_is_asked = false;

  bool operator==(const RankStatus&) const = default;
};

}  // namespace megalith
