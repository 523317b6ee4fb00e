#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::resilience {

// What monitors and supervisors say to each other. Plain data: a transport (transport.h) turns it into bytes. Times are
// ages and durations in seconds, never readings of a clock, since no two machines share one.

// 1000 x major + minor. Another minor version is understood: it may have fields that we do not know, or lack some that
// we do, but no further words of an enum. Another major one is refused, by name, whatever else stands in its messages.
constexpr int64_t kProtocol = 1001;
constexpr bool speaks_our_protocol(int64_t version) {
  return version / 1000 == kProtocol / 1000;
}
// "1.1", for people.
std::string protocol_name(int64_t version);

// Stands before every message. What belongs to another run, an older term or another generation is refused and counted.
struct Header {
  int64_t protocol = kProtocol;
  std::string run;         // id of the run
  int64_t term = 0;        // order: of the supervisor that gives it; report: the highest that the monitor has heard of
  int64_t generation = 0;  // order: what it is about; report: of the newest roster that the monitor has seen; 0: none
  int64_t sequence = 0;    // counts what this sender has sent since it started, in an order within its term; from 1
  std::string sender;      // name of the node; "supervisor" in orders

  bool operator==(const Header&) const = default;
};

// What a rank is doing, as its status page says. The order is the order of a rank's life up to `step`.
enum class Section : uint8_t { boot, rendezvous, load, plans, step, wait, save, validate, end };
constexpr int kSections = 9;
const char* name_of(Section section);

// A rank's calls of one group, of one kind: collectives and exchanges are counted apart. All members write the same
// name, and no other group has it.
struct GroupCalls {
  std::string group;      // such as "dp 5f1c", with a digest of the members
  std::string operation;  // of the last one entered: "all_reduce", ...
  int64_t entered = 0;    // calls that the rank has entered, and left: more entered than finished means inside
  int64_t finished = 0;
  int64_t bytes = 0;           // that the rank put into the last one entered
  bool exchanges = false;      // point to point: members need not have entered the same number
  std::vector<int64_t> peers;  // of an exchange: ranks of the world for which it may wait

  bool is_inside() const { return entered > finished; }
  bool operator==(const GroupCalls&) const = default;
};

enum class EndingKind : uint8_t { none, done, stopped, user, io, data, device, comm, non_finite, internal };
constexpr int kEndingKinds = 10;
const char* name_of(EndingKind kind);

// How a rank says it ended. `none`: it did not come to say anything.
struct Ending {
  EndingKind kind = EndingKind::none;  // done: all steps; stopped: saved on request, or at a time limit; else the error
  std::string message;                 // at most 512 bytes
  std::vector<int64_t> ranks;          // that the error names: those that failed or did not arrive

  bool operator==(const Ending&) const = default;
};

// A rank's status page (core/process/status_page.h), as read at the moment of the report.
struct PageReport {
  Section section = Section::boot;
  double section_seconds = 0.0;             // since it began
  std::array<double, kSections> longest{};  // seconds of each section, as in RankStatus; 0: it was not left yet
  int64_t step = -1;                        // that it works on, 0-based; -1: none yet
  int64_t micro_batch = 0;
  int64_t beats = 0;             // grows with every piece of work
  double beat_seconds = 0.0;     // since the monitor saw it grow; what the monitor itself overslept is taken off
  double working_seconds = 0.0;  // of its own in the last timed step; 0: none yet
  int64_t local_step = -1;       // newest step that it has kept in node memory or on the node's disk; -1: none
  int64_t persistent_step = -1;
  std::vector<GroupCalls> calls;
  Ending ending;

  bool operator==(const PageReport&) const = default;
};

// What /proc says, when an order asked for it.
struct ProcessReport {
  char state = '?';          // as in /proc/PID/stat: R, S, D, T, Z
  std::string wait_channel;  // function of the kernel in which it sleeps; empty: none
  double cpu_seconds = 0.0;
  std::string stack;  // kernel's, and the user's where the process could still write it; empty: not to be had

  bool operator==(const ProcessReport&) const = default;
};

struct ProcessEnd {
  std::optional<int64_t> exit_code;
  int64_t signal = 0;  // 0: none. Neither: nobody could collect the status, which without `done` is a failure

  bool operator==(const ProcessEnd&) const = default;
};

// A process that the monitor started or adopted: a rank, or the store of a generation.
struct RankReport {
  static constexpr int64_t kStore = -1;

  int64_t rank = 0;  // of the world; kStore
  int64_t generation = 0;
  int64_t pid = 0;
  std::optional<PageReport> page;        // none: not there yet, or not to be trusted (page_problem)
  std::string page_problem;              // why the page was refused
  std::optional<ProcessReport> process;  // only where asked for
  std::optional<ProcessEnd> end;         // none: it runs

  bool is_store() const { return rank == kStore; }
  bool operator==(const RankReport&) const = default;
};

enum class Tier : uint8_t { memory, local, persistent };
constexpr int kTiers = 3;
const char* name_of(Tier tier);
std::optional<Tier> tier_named(std::string_view name);

// A step of which a node holds parts, its own or copies of its peers', with manifests that are whole.
struct Holding {
  int64_t step = 0;
  int64_t generation = 0;  // that wrote it
  Tier tier = Tier::memory;
  int64_t parts = 0;          // of the whole checkpoint: the world size of the generation that wrote it
  std::vector<int64_t> held;  // part numbers, rising; all of them for a persistent checkpoint

  bool operator==(const Holding&) const = default;
};

// Where others read what a node holds, or where a generation's store is.
struct Place {
  std::string address;
  int64_t port = 0;    // 0: nowhere
  std::string secret;  // goes over the transport alone: in no file, argument or variable

  bool operator==(const Place&) const = default;
};

// How it went with an order, by the order's sequence number. Sent in every report until a newer order was carried out.
enum class Outcome : uint8_t {
  done,
  failed,   // it was tried; `reason` says what went wrong
  refused,  // an old term, a stale sequence number, an unknown roster: nothing was done
};
constexpr int kOutcomes = 3;
const char* name_of(Outcome outcome);

enum class OrderKind : uint8_t;

struct Result {
  int64_t term = 0;      // of the order
  int64_t sequence = 0;  // of the order
  OrderKind order = {};
  int64_t generation = 0;
  Outcome outcome = Outcome::done;
  std::string reason;

  bool operator==(const Result&) const = default;
};

enum class CheckOutcome : uint8_t { unknown, ok, failed };
constexpr int kCheckOutcomes = 3;
const char* name_of(CheckOutcome outcome);

// Monitor to supervisor: once a second, at once when something ended or an order was carried out, and after a dial.
struct Report {
  Header header;
  std::string address;  // of the node, as its peers reach it
  std::string boot_id;
  int64_t session = 0;     // of this monitor process; higher than that of any earlier one since the machine started
  double overslept = 0.0;  // seconds that the monitor's own loop came late since the last report; 0: in time
  std::vector<RankReport>
      ranks;  // running and ended, of the newest generation that this node knows, and older that still run
  std::optional<Result> result;  // of the newest order
  bool tells_holdings = false;   // `holdings` is the answer to an order, also where empty
  std::vector<Holding> holdings;
  Place holder;                // who serves them
  std::optional<Place> store;  // of the newest generation, on the node that serves it
  CheckOutcome check = CheckOutcome::unknown;
  std::string check_evidence;   // what failed, or why it is unknown
  bool stop_requested = false;  // the monitor has heard SIGTERM, SIGINT or SIGUSR1
  double stop_grace = 0.0;      // seconds that are left then; 0: not known
  int64_t refused = 0;          // messages refused so far: old terms, other runs, stale, damaged

  bool operator==(const Report&) const = default;
};

enum class OrderKind : uint8_t {
  greet,        // no more than: this term leads, report everything. Every second, so that a monitor knows its leader
  inspect,      // look into /proc for this generation's ranks; the next report has it
  kill,         // end all processes of this generation and lower; done: none is left and device memory is free
  stop,         // ask the ranks through their pages to stop at the next step boundary
  check,        // look whether this node can train
  tell,         // which steps it holds
  serve_store,  // start this generation's store, here; done: `store` in the report says where
  start,        // start this node's ranks of this generation
  finish,       // the run is over with `exit_code`: nothing is held any longer, the monitor ends
  dismiss,      // this monitor is refused, for `reason`: it ends with code 2
};
constexpr int kOrderKinds = 10;
const char* name_of(OrderKind kind);

// A node that holds steps, and where it serves them.
struct Holder {
  std::string node;
  Place place;

  bool operator==(const Holder&) const = default;
};

// Supervisor to monitor. Repeated until the monitor reports a result for its sequence number; a newer order replaces an
// older one. Names no program, working directory or variable: what is started stands in the roster in the run
// directory.
struct Order {
  Header header;
  OrderKind kind = OrderKind::greet;
  int64_t session = 0;          // dismiss: the monitor process that is meant
  std::string roster_digest;    // serve_store, start: of the roster in the run directory
  Place store;                  // start
  std::vector<Holder> holders;  // start: who holds parts that this node's ranks will read
  int64_t exit_code = 0;        // finish
  std::string reason;           // kill, stop, finish, dismiss: for the logs

  bool operator==(const Order&) const = default;
};

}  // namespace megalith::resilience
