#include <cuda_runtime_api.h>

#include <cstring>

#include "comm/nccl/nccl_check.h"
#include "comm/nccl/nccl_communicator.h"
#include "comm/store/rendezvous.h"
#include "comm/store/socket.h"
#include "comm/world.h"
#include "core/cuda/check.h"

namespace megalith::comm {

namespace {
class NcclWorld final : public World {
 public:
  NcclWorld(const JoinOptions& options, std::shared_ptr<const RankPlaces> places)
      : World(options.rank, std::move(places), std::make_shared<StoreBoard>(*options.store), Device::cuda),
        store_(*options.store),
        deadline_(options.start_deadline),
        watchdog_(std::make_shared<NcclWatchdog>(options.device_index)) {}

  void throw_if_failed() override { watchdog_->throw_if_failed(); }

 private:
  std::unique_ptr<Communicator> connect(Group group) override {
    const std::string key = next_key(group);
    const auto size = static_cast<int>(group.ranks.size());
    NcclCommunicator::Connection connection{.arrivals = Arrivals(store_, key, group.member, size),
                                            .deadline = deadline_};
    connection.id = id_of(group, key);
    return std::make_unique<NcclCommunicator>(std::move(group), std::move(connection), watchdog_);
  }

  // Made by the first member, who listens for the others under it.
  ncclUniqueId id_of(const Group& group, const std::string& key) {
    ncclUniqueId id{};
    if (group.member == 0) {
      check_nccl(ncclGetUniqueId(&id), "making a NCCL id");
      store_.set("nccl/" + key, std::string(id.internal, sizeof id.internal));
      return id;
    }
    const std::string bytes = store_.get("nccl/" + key, deadline_);
    if (bytes.size() != sizeof id.internal) fail(ErrorKind::comm, "the store holds no NCCL id for group '{}'", key);
    std::memcpy(id.internal, bytes.data(), sizeof id.internal);
    return id;
  }

  StoreClient& store_;
  double deadline_;
  std::shared_ptr<NcclWatchdog> watchdog_;
};
}  // namespace

std::unique_ptr<World> join_nccl(const JoinOptions& options) {
  ignore_broken_pipes();
  cuda::check(cudaSetDevice(options.device_index), "choosing the GPU of this rank");
  const RankPlace own = place_here(fmt::format("cuda:{}", options.device_index), options.store->local_address());
  auto places = std::make_shared<const RankPlaces>(
      exchange_places(*options.store, options.rank, options.size, own, options.start_deadline));
  return std::make_unique<NcclWorld>(options, std::move(places));
}

}  // namespace megalith::comm
