#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/call_log.h"
#include "comm/ranks.h"
#include "core/error.h"
#include "core/process/status_page.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace megalith::comm {

enum class Reduction : uint8_t { sum, max };

// What goes to, or comes from, one member of the group.
struct Message {
  int peer = 0;
  Tensor tensor;
};

// A call on its way. Its tensors and its communicator must stay as they are until a wait has returned (CPU) or the
// stream has come past it (GPU).
class Pending {
 public:
  class State {
   public:
    virtual ~State() = default;
    virtual void wait(Stream& stream) = 0;
  };

  Pending() = default;  // nothing to wait for
  explicit Pending(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // Work given to the stream from here on finds the call complete: on the CPU the host waits, on a GPU the stream does.
  // Throws what made the call fail; on a GPU a failure may only be known to a later call.
  void wait(Stream& stream) const;

 private:
  std::shared_ptr<State> state_;
};

// One call as a backend receives it, checked.
struct Call {
  Operation operation = Operation::barrier;
  Tensor input;
  Tensor output;  // in place: the same memory as `input`
  Reduction reduction = Reduction::sum;
  int root = 0;
  std::vector<Message> sends;
  std::vector<Message> receives;
  double deadline = 0.0;  // seconds, counted from when the call begins to run
  int64_t sequence = 0;   // of the calls of its kind (collective or exchange) in this group

  // Of the tensors this rank puts in; of an exchange, those it sends.
  int64_t bytes() const;
};

// Moves tensors between the ranks of one group. Every member makes the same collective calls in the same order; calls
// of one group run in that order, calls of different groups overlap. Tensors are contiguous, in the memory of the
// communicator's device. A call begins after what the stream holds and runs beside it until Pending::wait. Members are
// counted within the group: 0 to size() - 1.
//
// Every type can be moved, every type but i16 reduced. Threads and Gloo add in the order of the members, bf16 in fp32
// with one rounding at the end, so that results are the same bits on every rank and in every run.
//
// A call that does not finish within its deadline, or that a dead rank breaks, throws a comm error that names the
// group, the call and the ranks that did not arrive, and shows the last calls. After that every call of the group
// throws. In a group of one rank nothing is sent; only results asked for elsewhere than the input are copied.
class Communicator {
 public:
  static constexpr double kGroupDeadline = 0.0;    // "the default of this group"
  static constexpr double kUsualDeadline = 600.0;  // seconds

  Communicator(Group group, Device device);
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const std::string& name() const { return group_.name; }
  int rank() const { return group_.member; }
  int size() const { return static_cast<int>(group_.ranks.size()); }
  bool is_alone() const { return size() == 1; }
  const Group& group() const { return group_; }
  Device device() const { return device_; }
  // Of calls that give none themselves.
  void set_deadline(double seconds) { deadline_ = seconds; }
  // Where calls are shown from here on. Before the first one.
  void show_on(const StatusPage::Group& page) { page_ = page; }

  // tensor = reduction of the members' tensors, in place.
  [[nodiscard]] Pending all_reduce(Stream& stream, const Tensor& tensor, Reduction reduction = Reduction::sum,
                                   double deadline = kGroupDeadline);
  // output (N) = member rank()'s piece of the reduction of input (size() x N). output may be that piece of input.
  [[nodiscard]] Pending reduce_scatter(Stream& stream, const Tensor& input, const Tensor& output,
                                       Reduction reduction = Reduction::sum, double deadline = kGroupDeadline);
  // output (size() x N) = the members' inputs (N) in order. input may be this member's piece of output.
  [[nodiscard]] Pending all_gather(Stream& stream, const Tensor& input, const Tensor& output,
                                   double deadline = kGroupDeadline);
  // tensor = the root's tensor.
  [[nodiscard]] Pending broadcast(Stream& stream, const Tensor& tensor, int root, double deadline = kGroupDeadline);
  // Piece i of input (size() x N) goes to member i; piece i of output comes from member i. No aliasing.
  [[nodiscard]] Pending all_to_all(Stream& stream, const Tensor& input, const Tensor& output,
                                   double deadline = kGroupDeadline);
  // All messages travel at once, so that members that send to each other cannot wait for each other. Messages between
  // two members match in the order of their calls; at most one each way between two members in one call.
  [[nodiscard]] Pending exchange(Stream& stream, std::vector<Message> sends, std::vector<Message> receives,
                                 double deadline = kGroupDeadline);
  [[nodiscard]] Pending send_receive(Stream& stream, const Message& outgoing, const Message& incoming,
                                     double deadline = kGroupDeadline);
  // Complete when every member has called it.
  [[nodiscard]] Pending barrier(Stream& stream, double deadline = kGroupDeadline);

  // What this rank has asked of the group so far.
  const Traffic& traffic(Operation operation) const { return traffic_[static_cast<size_t>(operation)]; }
  const CallLog& log() const { return log_; }

 protected:
  // For the log and the status page. The ticket by which the call is known to the other two, which one thread calls at
  // a time.
  int64_t note_asked(const Call& call) { return log_.asked(call.operation, call.sequence, call.bytes()); }
  void note_started(const Call& call, int64_t ticket);
  void note_finished(const Call& call, int64_t ticket);
  // Names the group and the call, and shows the last calls. `ranks`: of the world, who is to blame, where it is known.
  Error failure(const Call& call, const std::string& reason, std::vector<int> ranks = {}) const;
  // "not finished within 5.0 s: rank 3 (...) did not arrive; rank 4 (...) is gone".
  std::string absence(const Call& call, const std::vector<int>& silent, const std::vector<int>& gone) const;

 private:
  // Only for groups of two and more.
  virtual Pending start(Stream& stream, Call call) = 0;

  Pending submit(Stream& stream, Call call);
  void check(const Tensor& tensor, const char* what) const;
  void check_reducible(const Tensor& tensor) const;
  void check_member(int member) const;
  void check_pieces(const Tensor& piece, const Tensor& whole) const;

  Group group_;
  Device device_;
  double deadline_ = kUsualDeadline;
  int64_t collectives_ = 0;
  int64_t exchanges_ = 0;
  std::array<Traffic, kOperations> traffic_{};
  CallLog log_;
  StatusPage::Group page_;
};

// A group of one rank, for whoever has no world: nothing is sent. Of any device, and for all threads at once.
Communicator& lone_group();

// Piece `index` of a contiguous tensor cut into equal pieces, as a vector.
Tensor piece_of(const Tensor& whole, int pieces, int index);

}  // namespace megalith::comm
