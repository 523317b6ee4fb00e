#include "comm/nccl/nccl_communicator.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "comm/nccl/nccl_check.h"
#include "core/clock.h"
#include "core/process/failpoint.h"

namespace megalith::comm {

namespace {
// Calls that run longer are announced to the other members.
constexpr double kAnnounceSeconds = 1.0;
constexpr double kAbsentSeconds = 2.0;
constexpr double kFinalizeSeconds = 10.0;

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f64:
      return ncclFloat64;
    case DType::i32:
      return ncclInt32;
    case DType::i64:
      return ncclInt64;
    default:
      fail(ErrorKind::internal, "internal error: NCCL reduces no {}", megalith::name_of(dtype));
  }
}

ncclRedOp_t nccl_reduction(Reduction reduction) {
  return reduction == Reduction::sum ? ncclSum : ncclMax;
}

size_t bytes_of(const Tensor& tensor) {
  return static_cast<size_t>(tensor.bytes());
}

size_t elements_of(const Tensor& tensor) {
  return static_cast<size_t>(tensor.elements());
}

// Until the communicator is no longer busy, `seconds` have passed or somebody says stop.
template <class Stop>
ncclResult_t wait_until_settled(ncclComm_t comm, double seconds, Stop&& stop) {
  const double until = monotonic_seconds() + seconds;
  ncclResult_t state = ncclInProgress;
  while (true) {
    const ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
    if (asked != ncclSuccess) return asked;
    if (state != ncclInProgress || monotonic_seconds() >= until || stop()) return state;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

bool never() {
  return false;
}
}  // namespace

class NcclCommunicator::InFlightPending final : public Pending::State {
 public:
  InFlightPending(NcclCommunicator& communicator, std::shared_ptr<CudaEvent> end)
      : communicator_(communicator), end_(std::move(end)) {}

  void wait(Stream& stream) override {
    communicator_.throw_if_failed();
    end_->order_before(static_cast<cudaStream_t>(stream.native()));
  }

 private:
  NcclCommunicator& communicator_;
  std::shared_ptr<CudaEvent> end_;
};

NcclCommunicator::NcclCommunicator(Group group, Connection connection, std::shared_ptr<NcclWatchdog> watchdog)
    : Communicator(std::move(group), Device::cuda),
      arrivals_(std::move(connection.arrivals)),
      watchdog_(std::move(watchdog)),
      barrier_memory_("NCCL barrier", Device::cuda, Arena::kAlignment) {
  if (size() == 1) return;
  connect(connection);
  watchdog_->add(*this);
}

NcclCommunicator::~NcclCommunicator() {
  if (size() == 1) return;
  watchdog_->remove(*this);
  if (comm_ != nullptr) {
    ncclCommFinalize(comm_);
    const ncclResult_t state = wait_until_settled(comm_, kFinalizeSeconds, never);
    state == ncclSuccess ? ncclCommDestroy(comm_) : ncclCommAbort(comm_);
  }
}

void NcclCommunicator::connect(const Connection& connection) {
  // Below the first collective, which has number 0.
  constexpr int64_t kConnecting = -1;
  arrivals_.announce(kConnecting);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.commName = name().c_str();
  ncclResult_t state = ncclCommInitRankConfig(&comm_, size(), connection.id, rank(), &config);
  if (state == ncclInProgress) state = wait_until_settled(comm_, connection.deadline, never);
  if (state == ncclSuccess) return;
  std::vector<int> absent;
  if (state == ncclInProgress) absent = arrivals_.absent(kConnecting, 0.0);
  const std::string why = state == ncclInProgress ? fmt::format("not connected within {:.1f} s; did not arrive: {}",
                                                                connection.deadline, group().describe(absent))
                                                  : describe_nccl(state, comm_);
  ncclCommAbort(comm_);
  throw Error(ErrorKind::comm,
              fmt::format("group '{}' of {} ranks on {}: {}", name(), size(), group().describe(rank()), why),
              {.ranks = ranks_of(absent), .group = name()});
}

Pending NcclCommunicator::start(Stream& stream, Call call) {
  pass_failpoint("comm.call");
  const std::lock_guard using_comm(using_comm_);
  throw_if_failed();
  CudaEvent(static_cast<cudaStream_t>(stream.native())).order_before(side_.native());
  InFlight flight{.ticket = note_asked(call)};
  flight.begin = std::make_shared<CudaEvent>(side_.native());
  issue(call);
  settle(call, flight);
  flight.end = std::make_shared<CudaEvent>(side_.native());
  flight.call = std::move(call);
  auto pending = std::make_shared<InFlightPending>(*this, flight.end);
  const std::lock_guard lock(mutex_);
  in_flight_.push_back(std::move(flight));
  return Pending(std::move(pending));
}

void NcclCommunicator::issue(const Call& call) {
  const cudaStream_t stream = side_.native();
  const Tensor& in = call.input;
  const Tensor& out = call.output;
  ncclResult_t status = ncclSuccess;
  switch (call.operation) {
    case Operation::all_reduce:
      status = ncclAllReduce(in.data, out.data, elements_of(in), nccl_type(in.dtype), nccl_reduction(call.reduction),
                             comm_, stream);
      break;
    case Operation::reduce_scatter:
      status = ncclReduceScatter(in.data, out.data, elements_of(out), nccl_type(in.dtype),
                                 nccl_reduction(call.reduction), comm_, stream);
      break;
    case Operation::all_gather:
      status = ncclAllGather(in.data, out.data, bytes_of(in), ncclInt8, comm_, stream);
      break;
    case Operation::broadcast:
      status = ncclBroadcast(in.data, out.data, bytes_of(in), ncclInt8, call.root, comm_, stream);
      break;
    case Operation::all_to_all:
      status = ncclAlltoAll(in.data, out.data, bytes_of(in) / static_cast<size_t>(size()), ncclInt8, comm_, stream);
      break;
    case Operation::exchange:
      return issue_exchange(call.sends, call.receives);
    case Operation::barrier: {
      void* word = barrier_memory_.whole().data;
      status = ncclAllReduce(word, word, 1, ncclInt32, ncclSum, comm_, stream);
      break;
    }
  }
  check_nccl(status, "NCCL refused a collective", comm_);
}

void NcclCommunicator::issue_exchange(const std::vector<Message>& sends, const std::vector<Message>& receives) {
  const cudaStream_t stream = side_.native();
  check_nccl(ncclGroupStart(), "beginning an exchange", comm_);
  for (const Message& message : sends) {
    const Tensor& tensor = message.tensor;
    check_nccl(ncclSend(tensor.data, bytes_of(tensor), ncclInt8, message.peer, comm_, stream), "sending", comm_);
  }
  for (const Message& message : receives) {
    const Tensor& tensor = message.tensor;
    check_nccl(ncclRecv(tensor.data, bytes_of(tensor), ncclInt8, message.peer, comm_, stream), "receiving", comm_);
  }
  check_nccl(ncclGroupEnd(), "ending an exchange", comm_);
}

// The first collectives of a group connect its members, which can wait for them as long as the collective itself.
void NcclCommunicator::settle(const Call& call, InFlight& flight) {
  const auto stop = [this] { return failed(); };
  const double quickly = std::min(kAnnounceSeconds, call.deadline);
  ncclResult_t state = wait_until_settled(comm_, quickly, stop);
  if (state == ncclInProgress) {
    announce(call);
    {
      const std::lock_guard lock(mutex_);
      note_started(call, flight.ticket);
      flight.shown = true;
    }
    state = wait_until_settled(comm_, call.deadline - quickly, stop);
  }
  throw_if_failed();
  if (state == ncclSuccess) return;
  const Error complaint = state == ncclInProgress ? absence_failure(call) : failure(call, describe_nccl(state, comm_));
  const std::lock_guard lock(mutex_);
  complaint_.emplace(complaint);
  throw Error(complaint);
}

bool NcclCommunicator::failed() {
  const std::lock_guard lock(mutex_);
  return failure_.has_value();
}

void NcclCommunicator::throw_if_failed() {
  const std::lock_guard lock(mutex_);
  if (failure_) throw Error(*failure_);
}

std::optional<Error> NcclCommunicator::find_failure() {
  const std::lock_guard lock(mutex_);
  if (complaint_) return complaint_;
  if (in_flight_.empty()) return std::nullopt;
  const Call oldest = in_flight_.front().call;
  try {
    retire_finished();
    ncclResult_t state = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(comm_, &state), "asking NCCL for errors", comm_);
    check_nccl(state, "NCCL failed", comm_);
    return in_flight_.empty() ? std::nullopt : overdue(in_flight_.front());
  } catch (const Error& error) {
    return failure(oldest, error.what());
  }
}

void NcclCommunicator::retire_finished() {
  while (!in_flight_.empty()) {
    InFlight& oldest = in_flight_.front();
    if (oldest.begun == 0.0 && oldest.begin->reached()) {
      oldest.begun = monotonic_seconds();
      if (!oldest.shown) note_started(oldest.call, oldest.ticket);
    }
    if (!oldest.end->reached()) return;
    note_finished(oldest.call, oldest.ticket);
    in_flight_.pop_front();
  }
}

std::optional<Error> NcclCommunicator::overdue(InFlight& oldest) {
  if (oldest.begun == 0.0) return std::nullopt;
  const double running = monotonic_seconds() - oldest.begun;
  const Call& call = oldest.call;
  if (running > kAnnounceSeconds && !oldest.announced) {
    oldest.announced = true;
    announce(call);
  }
  if (running < call.deadline) return std::nullopt;
  return absence_failure(call);
}

// The numbers of exchanges mean nothing to other members.
void NcclCommunicator::announce(const Call& call) {
  if (call.operation != Operation::exchange) arrivals_.announce(call.sequence);
}

// Of an exchange nobody but the peers can be missing, and which of them is not known.
std::vector<int> NcclCommunicator::absent_from(const Call& call) {
  announce(call);
  if (call.operation != Operation::exchange) return arrivals_.absent(call.sequence, kAbsentSeconds);
  std::vector<int> peers;
  for (const auto* messages : {&call.sends, &call.receives}) {
    for (const Message& message : *messages) peers.push_back(message.peer);
  }
  return peers;
}

Error NcclCommunicator::absence_failure(const Call& call) {
  const std::vector<int> absent = absent_from(call);
  return failure(call, absence(call, absent, {}), ranks_of(absent));
}

std::vector<int> NcclCommunicator::ranks_of(const std::vector<int>& members) const {
  std::vector<int> ranks;
  for (const int member : members) ranks.push_back(group().ranks[static_cast<size_t>(member)]);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

ncclComm_t NcclCommunicator::give_up(const Error& reason) {
  {
    const std::lock_guard lock(mutex_);
    failure_.emplace(reason);
  }
  // Whoever is giving NCCL a call sees the failure and lets go.
  const std::lock_guard using_comm(using_comm_);
  return std::exchange(comm_, nullptr);
}

}  // namespace megalith::comm
