#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/host/transport.h"

namespace megalith::comm {

// The collectives of host memory, made of letters between members. Data goes straight from its owner to who needs it:
// no rank waits for one that is not late itself, so a time-out names the right ones. A reduction is scattered (each
// member adds up one slice, in the order of the members) and then gathered, which sends no byte more than a ring does.
class HostCollectives {
 public:
  // `id` is the same on all members and differs between groups that share the transport.
  HostCollectives(const Group& group, uint32_t id, std::shared_ptr<Transport> transport);

  // Returns when the call is complete; throws Undelivered.
  void run(const Call& call);

 private:
  // Elements [begin, end) of a flat tensor.
  struct Slice {
    int64_t begin = 0;
    int64_t end = 0;
  };

  void all_reduce(const Call& call);
  void reduce_scatter(const Call& call);
  void all_gather(const Call& call);
  void broadcast(const Call& call);
  void all_to_all(const Call& call);
  void exchange(const Call& call);
  void barrier(const Call& call);

  void scatter_reduced(const Call& call, std::span<const Slice> slices, std::byte* output);
  void gather_slices(const Call& call, const Tensor& tensor, std::span<const Slice> slices);

  int size() const { return static_cast<int>(group_.ranks.size()); }
  // One for each member, equal where the elements can be cut equally.
  std::vector<Slice> slices_of(const Tensor& tensor) const;
  std::vector<int> others() const;
  Letter letter(const Call& call, int member, void* data, int64_t bytes) const;
  Letter numbered_letter(const Message& message, int64_t number) const;
  // Ends a round of letters: all of them are through.
  void trade(std::span<const Letter> sends, std::span<const Letter> receives);

  const Group& group_;
  uint64_t id_;
  std::shared_ptr<Transport> transport_;
  std::vector<std::byte> scratch_;
  std::vector<int64_t> sent_;      // messages of exchanges, by member
  std::vector<int64_t> received_;  // likewise
  uint64_t round_ = 0;             // of the call that runs
  double ends_ = 0.0;              // monotonic seconds
};

}  // namespace megalith::comm
