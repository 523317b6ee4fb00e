#include "comm/gloo/gloo_transport.h"
#include "comm/host/host_world.h"
#include "comm/store/rendezvous.h"
#include "comm/store/socket.h"

namespace megalith::comm {

std::unique_ptr<World> join_gloo(const JoinOptions& options) {
  ignore_broken_pipes();
  StoreClient& store = *options.store;
  const double seconds = options.start_deadline;
  auto places = std::make_shared<const RankPlaces>(
      exchange_places(store, options.rank, options.size, place_here("cpu", store.local_address()), seconds));
  const std::string& address = (*places)[static_cast<size_t>(options.rank)].address;
  auto transport = std::make_shared<GlooTransport>(store, address, options.rank, options.size, seconds);
  return std::make_unique<HostWorld>(
      options.rank, std::move(places), std::make_shared<StoreBoard>(store), std::move(transport),
      [&store, seconds](const std::string& key) { return number_of_group(store, key, seconds); });
}

}  // namespace megalith::comm
