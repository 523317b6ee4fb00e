#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/store/board.h"
#include "core/process/status_page.h"

namespace megalith::comm {

class StoreClient;

// A rank's place in the run, from which it makes its groups. It must outlive them.
class World {
 public:
  // `device`: whose memory the groups move.
  World(int rank, std::shared_ptr<const RankPlaces> places, std::shared_ptr<Board> board, Device device)
      : rank_(rank), places_(std::move(places)), board_(std::move(board)), device_(device) {}
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(places_->size()); }
  const RankPlaces& places() const { return *places_; }
  Board& board() const { return *board_; }
  Device device() const { return device_; }
  // Of this rank. Before the first group is made it may be changed for one that somebody reads, which must outlive the
  // world.
  StatusPage& status_page() const { return *page_; }
  void set_status_page(StatusPage& page) { page_ = &page; }
  // Spent so far on connecting the members of groups.
  double seconds_connecting() const { return connecting_; }

  // Every member calls it with the same name and global ranks, and all ranks make their groups in one order; groups of
  // the same name and ranks are told apart by it. User error for ranks that make no group.
  std::unique_ptr<Communicator> make_group(const std::string& name, std::vector<int> ranks);
  // Comm error when a call of any group has failed. On a GPU it may have been waited for without the host knowing.
  virtual void throw_if_failed() {}
  // All ranks, as group "world".
  std::unique_ptr<Communicator> make_world_group();
  // Of the groups that are made from here on, for calls that give none themselves.
  void set_deadline(double seconds) { deadline_ = seconds; }

 protected:
  // Names the group within the run; each call counts as another of the same name and ranks.
  std::string next_key(const Group& group);

 private:
  // Two members and more.
  virtual std::unique_ptr<Communicator> connect(Group group) = 0;

  int rank_;
  std::shared_ptr<const RankPlaces> places_;
  std::shared_ptr<Board> board_;
  Device device_;
  std::map<std::string, int> made_;
  double deadline_ = Communicator::kUsualDeadline;
  StatusPage own_page_;
  StatusPage* page_ = &own_page_;
  double connecting_ = 0.0;
};

// The world of a rank that has no others: all its groups are of one.
std::unique_ptr<World> make_lone_world(Device device);

struct JoinOptions {
  int rank = 0;
  int size = 1;
  int device_index = 0;           // of the GPU that this rank drives
  double start_deadline = 600.0;  // seconds for all ranks to appear
  StoreClient* store = nullptr;   // must outlive the world
};

// Meets the other ranks through the store. Comm error that names who did not appear; user error where the build lacks
// the library.
std::unique_ptr<World> join_gloo(const JoinOptions& options);
std::unique_ptr<World> join_nccl(const JoinOptions& options);

}  // namespace megalith::comm
