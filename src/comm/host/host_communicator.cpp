#include "comm/host/host_communicator.h"

#include <algorithm>

namespace megalith::comm {

namespace {
class HostPending final : public Pending::State {
 public:
  explicit HostPending(std::shared_future<void> done) : done_(std::move(done)) {}
  void wait(Stream&) override { done_.get(); }

 private:
  std::shared_future<void> done_;
};
}  // namespace

HostCommunicator::HostCommunicator(Group group, uint32_t id, std::shared_ptr<Transport> transport)
    : Communicator(std::move(group), Device::cpu),
      transport_(std::move(transport)),
      collectives_(this->group(), id, transport_) {}

Pending HostCommunicator::start(Stream&, Call call) {
  const int64_t ticket = call_log().asked(call.operation, call.sequence, call.bytes());
  auto job = [this, ticket, call = std::move(call)] { run(call, ticket); };
  return Pending(std::make_shared<HostPending>(worker_.submit(std::move(job))));
}

void HostCommunicator::run(const Call& call, int64_t ticket) {
  if (!failure_.empty()) fail(ErrorKind::comm, "group '{}' failed before: {}", name(), failure_);
  call_log().started(ticket);
  try {
    collectives_.run(call);
  } catch (const Undelivered& error) {
    failure_ = failure_message(call, explain(call, error));
    throw Error(ErrorKind::comm, failure_);
  } catch (const std::exception& error) {
    failure_ = failure_message(call, error.what());
    throw Error(ErrorKind::comm, failure_);
  }
  call_log().finished(ticket);
}

std::string HostCommunicator::explain(const Call& call, const Undelivered& error) {
  std::string reason = absence(call, members_of(error.silent()), members_of(error.gone()));
  const bool is_kept = transport_->leave_word(
      fmt::format("{} #{} of group '{}': {}", name_of(call.operation), call.sequence, name(), reason));
  if (!is_kept) reason += "; rank 0 (which serves the store) does not answer";
  for (const auto* peers : {&error.gone(), &error.silent()}) {
    for (const int peer : *peers) {
      const std::string word = transport_->last_word_of(peer);
      if (!word.empty()) reason += fmt::format("; rank {} had failed in {}", peer, word);
    }
  }
  return reason;
}

std::vector<int> HostCommunicator::members_of(const std::vector<int>& ranks) const {
  std::vector<int> members;
  members.reserve(ranks.size());
  const auto& all = group().ranks;
  for (const int rank : ranks) {
    members.push_back(static_cast<int>(std::find(all.begin(), all.end(), rank) - all.begin()));
  }
  return members;
}

}  // namespace megalith::comm
