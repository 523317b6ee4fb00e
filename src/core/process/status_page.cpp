#include "core/process/status_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/clock.h"
#include "core/file.h"
#include "core/hash/digest.h"
#include "core/process/process_facts.h"
#include "core/process/status_page_bytes.h"
#include "core/process/status_reader.h"

namespace megalith {

namespace {
static_assert(kStatusSections == kSections);

template <class T>
void put(std::atomic<T>& cell, std::type_identity_t<T> value) {
  cell.store(value, std::memory_order_release);
}

// Cuts what is too long.
template <class Cells>
void put_text(Cells& cells, std::string_view text) {
  for (size_t i = 0; i < cells.size(); ++i) {
    uint64_t word = 0;
    const std::string_view piece = text.substr(std::min(text.size(), i * sizeof word), sizeof word);
    std::memcpy(&word, piece.data(), piece.size());
    put(cells[i], word);
  }
}

// There is one writer.
void put_longest(std::atomic<double>& cell, double value) {
  if (value > cell.load(std::memory_order_relaxed)) put(cell, value);
}
void add_one(std::atomic<int64_t>& cell) {
  put(cell, cell.load(std::memory_order_relaxed) + 1);
}

// The sequence is odd while it lives.
class Writing {
 public:
  explicit Writing(std::atomic<uint64_t>& sequence)
      : sequence_(sequence), before_(sequence.load(std::memory_order_relaxed)) {
    put(sequence_, before_ + 1);
  }
  ~Writing() { put(sequence_, before_ + 2); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  std::atomic<uint64_t>& sequence_;
  uint64_t before_;
};

void check_owner(const RankStatus& status, const std::filesystem::path& path, int rank, int64_t generation) {
  if (status.rank != rank || status.generation != generation) {
    user_error("the status page {} is that of rank {} of generation {}, this is rank {} of generation {}",
               path.string(), status.rank, status.generation, rank, generation);
  }
  if (status.pid != 0) {
    user_error("the status page {} is that of process {}: every rank needs a page of its own", path.string(),
               status.pid);
  }
}

StatusPageBytes* map_page(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) io_error_errno(fmt::format("cannot open the status page {}", path.string()));
  void* memory = ::mmap(nullptr, kStatusPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int error = errno;
  ::close(file);
  errno = error;
  if (memory == MAP_FAILED) io_error_errno(fmt::format("cannot map the status page {}", path.string()));
  return static_cast<StatusPageBytes*>(memory);
}

}  // namespace

const char* name_of(Section section) {
  constexpr std::array<const char*, kSections> kNames = {"boot", "rendezvous", "load",     "plans", "step",
                                                         "wait", "save",       "validate", "end"};
  return kNames.at(static_cast<size_t>(section));
}

void StatusPage::create(const std::filesystem::path& path, const Owner& owner) {
  const auto is_printable = [](char c) { return c > ' ' && c <= '~'; };
  if (owner.run.size() > kRunWords * sizeof(uint64_t) ||
      !std::all_of(owner.run.begin(), owner.run.end(), is_printable) || owner.rank < 0 || owner.generation < 0) {
    user_error(
        "no status page can be made for rank {} of generation {} of run '{}': a run has at most {} characters and no "
        "blanks, numbers begin at 0",
        owner.rank, owner.generation, owner.run, kRunWords * sizeof(uint64_t));
  }
  PlainStatusPage page;
  page.rank = owner.rank;
  page.generation = owner.generation;
  page.progress.section_began = monotonic_seconds();
  std::memcpy(page.run.data(), owner.run.data(), owner.run.size());
  std::string content(kStatusPageBytes, '\0');
  std::memcpy(content.data(), &page, sizeof page);
  const std::filesystem::path part = std::filesystem::path(path) += ".new";
  remove_if_there(part);
  File::create_new(part).write(content);
  rename_over(part, path);
}

StatusPage::StatusPage() : bytes_(new StatusPageBytes), is_file_(false) {}

StatusPage::StatusPage(const std::filesystem::path& path, int rank, int64_t generation) : is_file_(true) {
  check_owner(StatusReader(path).read(), path, rank, generation);
  bytes_ = map_page(path);
  const ProcessIdentity self = own_process();
  const Writing writing(bytes_->progress.sequence);
  put(bytes_->progress.pid, self.pid);
  put(bytes_->progress.start_ticks, self.start_ticks);
}

StatusPage::~StatusPage() {
  if (is_file_) {
    ::munmap(bytes_, kStatusPageBytes);
  } else {
    delete bytes_;
  }
}

void StatusPage::enter(Section section) {
  auto& progress = bytes_->progress;
  const double now = monotonic_seconds();
  const double took = now - progress.section_began.load(std::memory_order_relaxed);
  const auto before = static_cast<Section>(progress.section.load(std::memory_order_relaxed));
  {
    const Writing writing(progress.sequence);
    if (before != Section::save) put_longest(longest_in(before), took);
    put(progress.section, static_cast<uint32_t>(section));
    put(progress.section_began, now);
    put(progress.micro_batch, -1);
  }
  beat();
}

std::atomic<double>& StatusPage::longest_in(Section section) {
  return bytes_->progress.longest[static_cast<size_t>(section)];
}

void StatusPage::saw_save(double seconds) {
  put_longest(longest_in(Section::save), seconds);
}

void StatusPage::begin_step(int64_t step) {
  put(bytes_->progress.step, step);
  enter(Section::step);
}

void StatusPage::begin_micro_batch(int64_t micro_batch) {
  put(bytes_->progress.micro_batch, micro_batch);
  beat();
}

void StatusPage::beat() {
  bytes_->beats.fetch_add(1, std::memory_order_relaxed);
}

void StatusPage::set_working_seconds(double seconds) {
  put(bytes_->progress.working_seconds, seconds);
}

void StatusPage::set_local_step(int64_t step) {
  put(bytes_->progress.local_step, step);
}

void StatusPage::set_persistent_step(int64_t step) {
  put(bytes_->progress.persistent_step, step);
}

void StatusPage::end(const RankStatus::Ending& ending) {
  enter(Section::end);
  auto& cells = bytes_->ending;
  const Writing writing(cells.sequence);
  put(cells.kind, static_cast<uint32_t>(ending.kind));
  const size_t ranks = std::min(ending.ranks.size(), kStatusRanks);
  put(cells.ranks_count, static_cast<uint32_t>(ranks));
  for (size_t i = 0; i < ranks; ++i) put(cells.ranks[i], ending.ranks[i]);
  put_text(cells.message, ending.message);
  put(cells.outcome, 1 + static_cast<uint32_t>(ending.outcome));
}

void StatusPage::end(const Error& error) {
  end({.outcome = RankStatus::Outcome::failed,
       .kind = error.kind(),
       .ranks = error.facts().ranks,
       .message = error.what()});
}

bool StatusPage::stop_is_asked() const {
  return bytes_->stop.load(std::memory_order_relaxed) != 0;
}

StatusPage::Group StatusPage::add_group(std::string_view name, std::span<const int> ranks, int member) {
  Group group;
  for (GroupCells<std::atomic>& cells : bytes_->groups) {
    if (cells.size.load(std::memory_order_relaxed) != 0) continue;
    const Writing writing(cells.sequence);
    put_text(cells.name, name.substr(0, kNameWords * sizeof(uint64_t)));
    put(cells.members, hash64(std::as_bytes(ranks)));
    put(cells.member, member);
    put(cells.size, static_cast<int32_t>(ranks.size()));
    group.cells_ = &cells;
    break;
  }
  return group;
}

void StatusPage::Group::entered(const Call& call) {
  if (cells_ == nullptr) return;
  const Writing writing(cells_->sequence);
  put_text(cells_->operation, call.operation);
  put(cells_->bytes, call.bytes);
  for (size_t i = 0; i < call.peers.size(); ++i) put(cells_->peers[i], call.peers[i]);
  add_one(call.is_exchange ? cells_->exchanges.entered : cells_->collectives.entered);
}

void StatusPage::Group::finished(bool is_exchange) {
  if (cells_ == nullptr) return;
  add_one(is_exchange ? cells_->exchanges.finished : cells_->collectives.finished);
}

}  // namespace megalith
