#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/process/rank_status.h"

namespace megalith {

// status_page_bytes.h
struct StatusPageBytes;
template <template <class> class Cell>
struct GroupCells;

// One page of memory in which a rank says how far it has come (RankStatus), and reads whether it shall stop. Under a
// monitor it is a file in a memory file system, which outlives both; else memory of the process that nobody reads, so
// that the code is the same. Writing is a few stores: no system call, no lock, no waiting for a reader.
//
// One thread writes, but for beat(), the calls of groups and what is saved.
class StatusPage {
 public:
  struct Owner {
    std::string run;  // at most 64 printable characters
    int64_t generation = 0;
    int rank = 0;
  };
  // By whoever starts the rank, before that: makes the file, in place of one of an earlier rank.
  static void create(const std::filesystem::path& path, const Owner& owner);

  // Nobody watches.
  StatusPage();
  // The page that create() made for this rank; this process becomes its writer. User error for a page of another rank
  // or generation, and for one that another process has opened.
  StatusPage(const std::filesystem::path& path, int rank, int64_t generation);
  ~StatusPage();
  StatusPage(const StatusPage&) = delete;
  StatusPage& operator=(const StatusPage&) = delete;

  // Each is a beat as well.
  void enter(Section section);
  void begin_step(int64_t step);
  void begin_micro_batch(int64_t micro_batch);
  // Safe from several threads.
  void beat();

  void set_working_seconds(double seconds);
  void set_local_step(int64_t step);
  void set_persistent_step(int64_t step);
  // A whole save took so long, also what it did beside training: from any one thread.
  void saw_save(double seconds);
  // The last thing a rank says. Texts that are too long are cut.
  void end(const RankStatus::Ending& ending);
  void end(RankStatus::Outcome outcome) { end({.outcome = outcome}); }
  void end(const Error& error);

  // By a monitor: end at the next step boundary, and save.
  bool stop_is_asked() const;

  // The calls of one group. Whoever writes takes care that one thread does at a time.
  class Group {
   public:
    struct Call {
      std::string_view operation;
      int64_t bytes = 0;
      std::array<int, 2> peers{-1, -1};
      bool is_exchange = false;
    };
    void entered(const Call& call);
    // The oldest of its kind that is not finished.
    void finished(bool is_exchange = false);

   private:
    friend class StatusPage;
    GroupCells<std::atomic>* cells_ = nullptr;  // null: the page had no room for the group
  };
  // Inside of a call as long as it lives.
  class Inside {
   public:
    Inside(Group& group, const Group::Call& call) : group_(group), is_exchange_(call.is_exchange) {
      group_.entered(call);
    }
    ~Inside() { group_.finished(is_exchange_); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Group& group_;
    bool is_exchange_;
  };
  static constexpr int kGroups = 10;
  // `ranks`: of the world, in the order of members. Groups beyond kGroups are not shown.
  Group add_group(std::string_view name, std::span<const int> ranks, int member);

 private:
  std::atomic<double>& longest_in(Section section);

  StatusPageBytes* bytes_;
  bool is_file_;
};

}  // namespace megalith
