#include "comm/host/host_communicator.h"

#include <algorithm>

#include "core/process/failpoint.h"

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
  const int64_t ticket = note_asked(call);
  auto job = [this, ticket, call = std::move(call)] { run(call, ticket); };
  return Pending(std::make_shared<HostPending>(worker_.submit(std::move(job))));
}

void HostCommunicator::run(const Call& call, int64_t ticket) {
  if (failure_) throw failure_->reworded(fmt::format("group '{}' failed before: {}", name(), failure_->what()));
  pass_failpoint("comm.call");
  note_started(call, ticket);
  try {
    collectives_.run(call);
  } catch (const Undelivered& error) {
    throw failure_.emplace(failure(call, explain(call, error), error.facts().ranks));
  } catch (const std::exception& error) {
    throw failure_.emplace(failure(call, error.what()));
  }
  note_finished(call, ticket);
}

std::string HostCommunicator::explain(const Call& call, const Undelivered& error) {
  std::string reason = absence(call, members_of(error.silent()), members_of(error.gone()));
  const bool is_kept = transport_->leave_word(
      fmt::format("{} #{} of group '{}': {}", name_of(call.operation), call.sequence, name(), reason));
  if (!is_kept) reason += "; rank 0 (or the process that serves the store in its place) does not answer";
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
