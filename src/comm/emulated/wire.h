#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace megalith::comm {

// What joins ranks: the links inside a machine (or inside whatever else such links join), and the network between
// machines.
enum class LinkKind : uint8_t { inside, between };
constexpr int kLinkKinds = 2;

struct Link {
  double bytes_per_second = 0.0;  // of one rank, each way; 0: there is no such link
  double call_seconds = 0.0;      // of a call, however small
  double hop_seconds = 0.0;       // more, for each machine that a collective goes on to
  int blocks = 16;                // of NCCL's kernel for a collective: each holds a multiprocessor while the call lasts
  int message_blocks = 16;        // of an exchange
};

// How long calls of one size took, alone, in a group of a cluster (`bench comm`).
struct MeasuredCall {
  Operation operation = Operation::barrier;
  int members = 2;
  int machines = 1;
  int64_t bytes = 0;  // Call::bytes()
  double seconds = 0.0;
};

// A model of a network, as one rank sees it: how long a call takes. Ranks fill machines in their order.
struct Wire {
  std::string name;
  int ranks_per_machine = 8;  // that the links inside join
  std::array<Link, kLinkKinds> links = {};
  // Where there are any, they say how long a call takes that nothing disturbs, and the links say only how calls share.
  std::vector<MeasuredCall> measured = {};

  Link& link(LinkKind kind) { return links[static_cast<size_t>(kind)]; }
  const Link& link(LinkKind kind) const { return links[static_cast<size_t>(kind)]; }
};

// The wire of a cluster on which these calls were measured. Its machines have as many ranks as the largest group on one
// of them had; the rate of a link is the largest that a call reached.
Wire measured_wire(std::string name, std::vector<MeasuredCall> calls);

// Where the members of a group are.
struct GroupSpan {
  int members = 1;
  int machines = 1;
  int ranks_on_machine = 1;  // on the one that has fewest: as many NICs serve the group there
};
GroupSpan span_of(const std::vector<int>& ranks, int ranks_per_machine);

// What a call asks of the wire.
struct CallCost {
  double latency = 0.0;                       // seconds before anything moves
  std::array<double, kLinkKinds> bytes = {};  // that this rank's links carry then, each way
  int blocks = 1;                             // multiprocessors held from the beginning to the end
};

// A user error where the wire cannot be: a rate or a time that is no number above 0, or nothing that joins ranks.
void check_wire(const Wire& wire);
// A user error that names the link which the group needs and the wire lacks.
void check_group(const Wire& wire, const Group& group);

CallCost cost_of(const Wire& wire, const Group& group, const Call& call);
// From beginning to end, where no other call is under way.
double seconds_alone(const Wire& wire, const CallCost& cost);

}  // namespace megalith::comm
