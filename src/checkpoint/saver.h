#pragma once

#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "checkpoint/format/shard_image.h"
#include "checkpoint/nodes/part_store.h"
#include "checkpoint/nodes/peer_copies.h"
#include "checkpoint/store.h"
#include "comm/store/board.h"
#include "core/process/status_page.h"

namespace megalith::checkpoint {

// Writes snapshots from a thread of its own, together with the savers of the other ranks. One save at a time.
class Saver {
 public:
  struct Options {
    Part place = {};  // this rank among those that save together
    int64_t generation = 1;
    // Where other ranks are; must outlive the saver. Null: there are none.
    comm::Board* board = nullptr;
    double deadline = 600.0;  // seconds, for the slowest rank after the fastest
    double patience = 30.0;   // the same when this rank is about to end: another may be gone
    std::filesystem::path persistent = {};
    int64_t persistent_keep = Store::kKeepAll;
    Ranking ranking = {};
    Fence fence = {};                  // of the persistent tier
    std::filesystem::path local = {};  // empty: no such tier
    int64_t local_keep = 2;
    std::filesystem::path memory = {};  // where the images lie; empty: in the process alone
    std::optional<PeerCopies> copies = {};
    int threads = 1;             // that put images together and digest them
    StatusPage* page = nullptr;  // of this rank; must outlive the saver. Null: nobody hears what is saved
  };

  struct Job {
    RunState state;
    const ShardImage* image = nullptr;
    int64_t memory_image = 0;  // which one that is of those in memory
    // Called first; then the image is whole, and stays so until the save has ended.
    std::function<void(ThreadPool&)> finish_image;
    bool to_persistent = true;
    bool to_local = false;
    int64_t protected_step = -1;  // which the local tier and copies must not remove
  };

  struct Outcome {
    int64_t step = 0;
    std::string failure;  // of this rank or another; empty: everything that was asked for is durable
    bool persistent = false;
    SaveResult result;  // on the first rank
    double seconds = 0.0;
  };

  explicit Saver(Options options);
  // Waits for the save that is under way.
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // Only while it is not busy.
  void begin(Job job);
  bool busy() const;
  // Waits for the save that is under way.
  void wait();
  // Of a save that has ended since the last call.
  std::optional<Outcome> take_outcome();

  // Before the image is overwritten.
  void revoke_memory(int64_t image = 0) const;
  // Forgets what is only kept for a restart, here and of others.
  void remove_memory() const;

 private:
  void run();
  Outcome save(const Job& job);
  void show(const Job& job, double seconds) const;
  using Digests = std::shared_future<FileDigests>;
  FileDigests digest(const Job& job);
  void save_local(const Job& job, const Digests& digests) const;
  void exchange_copies(const Job& job, const Digests& digests, const std::string& reason) const;
  void keep_copy(const Job& job) const;
  Manifest write_part(const Job& job, const Digests& digests) const;
  void commit_together(const Job& job, const std::optional<Manifest>& part, const std::string& reason,
                       SaveResult& result);
  void commit(const Job& job, const std::optional<Manifest>& own, const std::string& reason, SaveResult& result);
  void retire_older(const Job& job, const Manifest& part, SaveResult& result);
  void read_back(const Manifest& part) const;

  bool is_first() const { return options_.place.rank == 0; }
  std::string key(const Job& job, const char* what, int64_t rank) const;
  void post(const Job& job, const char* what, const std::string& text) const;
  std::string await(const Job& job, const char* what, int64_t rank) const;
  // What the other ranks have posted, on the first rank.
  std::vector<std::string> collect(const Job& job, const char* what) const;

  Options options_;
  Store store_;
  ThreadPool pool_;                  // of finish_image(), then of digest()
  mutable StatusPage::Group waits_;  // for the words of other ranks
  int64_t saves_ = 0;
  Manifest whole_;  // on the first rank

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Job> job_;
  std::optional<Outcome> outcome_;
  bool stop_ = false;
  double stopped_at_ = 0.0;
  std::thread thread_;
};

}  // namespace megalith::checkpoint
