#include "parallel/schedule/message_matching.h"

namespace megalith::parallel {

namespace {

// One end of a message: the transfer as its rank's list says it.
struct End {
  ActionIndex index;
  Transfer transfer;
};

std::string describe(const End& end) {
  return fmt::format("stage {}, action {}: {} of chunk {}, micro batch {}, peer {}", end.index.stage, end.index.action,
                     end.transfer.payload == Payload::activation ? "activation" : "gradient", end.transfer.chunk,
                     end.transfer.micro_batch, end.transfer.peer);
}

bool same_message(const End& sent, const End& received, int64_t stages) {
  const int64_t from = sent.transfer.chunk * stages + static_cast<int64_t>(sent.index.stage);
  const int64_t to = received.transfer.chunk * stages + static_cast<int64_t>(received.index.stage);
  const int64_t step = sent.transfer.payload == Payload::activation ? 1 : -1;
  return sent.transfer.payload == received.transfer.payload &&
         sent.transfer.micro_batch == received.transfer.micro_batch && to == from + step;
}

}  // namespace

MessageMatching::MessageMatching(const std::vector<Schedule>& schedules) {
  const size_t stages = schedules.size();
  std::vector<std::vector<End>> sent(stages * stages);
  std::vector<std::vector<End>> received(stages * stages);
  for (size_t stage = 0; stage < stages; ++stage) {
    partners_.emplace_back(schedules[stage].size());
    for (size_t i = 0; i < schedules[stage].size(); ++i) {
      for (const Transfer& transfer : schedules[stage][i].sends)
        sent[stage * stages + static_cast<size_t>(transfer.peer)].push_back({{stage, i}, transfer});
      for (const Transfer& transfer : schedules[stage][i].receives)
        received[static_cast<size_t>(transfer.peer) * stages + stage].push_back({{stage, i}, transfer});
    }
  }
  for (size_t pair = 0; pair < sent.size(); ++pair) {
    MEGALITH_CHECK(sent[pair].size() == received[pair].size(), "{} messages from stage {} to {} are sent, {} received",
                   sent[pair].size(), pair / stages, pair % stages, received[pair].size());
    for (size_t i = 0; i < sent[pair].size(); ++i) {
      const End& out = sent[pair][i];
      const End& in = received[pair][i];
      MEGALITH_CHECK(same_message(out, in, static_cast<int64_t>(stages)), "'{}' meets '{}'", describe(out),
                     describe(in));
      partners_[out.index.stage][out.index.action].push_back(in.index);
      partners_[in.index.stage][in.index.action].push_back(out.index);
    }
  }
}

}  // namespace megalith::parallel
