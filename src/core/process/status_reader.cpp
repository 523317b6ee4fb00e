#include "core/process/status_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "core/process/status_page_bytes.h"

namespace megalith {

namespace {

constexpr int32_t kMostRanks = 1 << 24;
constexpr int32_t kMostPids = 1 << 22;  // PID_MAX_LIMIT

// Turns the cells of one page into plain values, and refuses what no rank writes.
class Parser {
 public:
  Parser(const PlainStatusPage& page, const std::string& name) : page_(page), name_(name) {}

  RankStatus parse() const {
    if (page_.magic != kStatusMagic) data_error("{} is no status page of a rank", name_);
    if (page_.version != kStatusVersion) {
      data_error("{} is a status page of version {}, this program reads version {}: the rank is of another build",
                 name_, page_.version, kStatusVersion);
    }
    RankStatus status;
    status.run = identifier(page_.run, "the run");
    status.generation = at_least(0, page_.generation, "the generation");
    status.rank = within(0, kMostRanks, page_.rank, "the rank");
    parse_progress(status);
    status.beats = at_least(0, page_.beats, "the number of beats");
    status.stop_is_asked = page_.stop != 0;
    for (const auto& cells : page_.groups) {
      if (cells.size != 0) status.groups.push_back(group_of(cells));
    }
    if (page_.ending.outcome != 0) status.ending = ending_of(page_.ending);
    return status;
  }

 private:
  template <class Value>
  [[noreturn]] void refuse(const char* what, const Value& value) const {
    data_error("{} is damaged: {} is {}", name_, what, value);
  }

  int64_t at_least(int64_t least, int64_t value, const char* what) const {
    if (value < least) refuse(what, value);
    return value;
  }

  int32_t within(int32_t least, int32_t most, int32_t value, const char* what) const {
    if (value < least || value > most) refuse(what, value);
    return value;
  }

  double seconds(double value, const char* what) const {
    if (!std::isfinite(value) || value < 0.0) refuse(what, value);
    return value;
  }

  template <class Cells>
  static std::string text(const Cells& cells) {
    std::string text(sizeof(cells), '\0');
    std::memcpy(text.data(), cells.data(), sizeof(cells));
    text.resize(std::min(text.find('\0'), text.size()));
    return text;
  }

  template <class Cells>
  std::string identifier(const Cells& cells, const char* what) const {
    std::string found = text(cells);
    const auto is_printable = [](char c) { return c > ' ' && c <= '~'; };
    if (!std::all_of(found.begin(), found.end(), is_printable)) refuse(what, "not printable");
    return found;
  }

  void parse_progress(RankStatus& status) const {
    const auto& progress = page_.progress;
    status.pid = within(0, kMostPids, progress.pid, "the process");
    status.start_ticks = progress.start_ticks;
    if (progress.section >= kSections) refuse("the section", progress.section);
    status.section = static_cast<Section>(progress.section);
    status.section_began = seconds(progress.section_began, "the begin of the section");
    for (size_t i = 0; i < kStatusSections; ++i)
      status.longest[i] = seconds(progress.longest[i], "the longest time in a section");
    status.step = at_least(-1, progress.step, "the step");
    status.micro_batch = at_least(-1, progress.micro_batch, "the micro batch");
    status.working_seconds = seconds(progress.working_seconds, "the working time");
    status.local_step = at_least(-1, progress.local_step, "the local step");
    status.persistent_step = at_least(-1, progress.persistent_step, "the persistent step");
  }

  RankStatus::Calls calls_of(const CallsCells<Plain>& cells) const {
    const int64_t finished = at_least(0, cells.finished, "the number of finished calls");
    return {.entered = at_least(finished, cells.entered, "the number of calls"), .finished = finished};
  }

  RankStatus::Group group_of(const GroupCells<Plain>& cells) const {
    RankStatus::Group group;
    group.name = identifier(cells.name, "the name of a group");
    group.members = cells.members;
    group.size = within(1, kMostRanks, cells.size, "the size of a group");
    group.member = within(0, group.size - 1, cells.member, "the member of a group");
    group.collectives = calls_of(cells.collectives);
    group.exchanges = calls_of(cells.exchanges);
    group.operation = identifier(cells.operation, "the operation of a call");
    group.bytes = at_least(0, cells.bytes, "the size of a call");
    for (size_t i = 0; i < group.peers.size(); ++i)
      group.peers[i] = within(-1, kMostRanks, cells.peers[i], "the peer of a call");
    return group;
  }

  RankStatus::Ending ending_of(const EndingCells<Plain>& cells) const {
    constexpr auto kLastOutcome = static_cast<uint32_t>(RankStatus::Outcome::failed);
    constexpr auto kLastKind = static_cast<uint32_t>(ErrorKind::internal);
    RankStatus::Ending ending;
    if (cells.outcome - 1 > kLastOutcome) refuse("the outcome", cells.outcome);
    ending.outcome = static_cast<RankStatus::Outcome>(cells.outcome - 1);
    if (cells.kind > kLastKind) refuse("the kind of the error", cells.kind);
    ending.kind = static_cast<ErrorKind>(cells.kind);
    if (cells.ranks_count > kStatusRanks) refuse("the number of ranks that the error names", cells.ranks_count);
    for (size_t i = 0; i < cells.ranks_count; ++i)
      ending.ranks.push_back(within(0, kMostRanks, cells.ranks[i], "a rank that the error names"));
    ending.message = text(cells.message);
    for (char& c : ending.message) {
      if ((c < ' ' && c != '\n') || c > '~') c = '?';
    }
    return ending;
  }

  const PlainStatusPage& page_;
  const std::string& name_;
};

PlainStatusPage copy_of(std::span<const std::byte> bytes) {
  PlainStatusPage page;
  std::memcpy(static_cast<void*>(&page), bytes.data(), sizeof page);
  return page;
}

using Sequences = std::array<uint64_t, kStatusGroups + 2>;
Sequences sequences_of(const PlainStatusPage& page) {
  Sequences all{page.progress.sequence, page.ending.sequence};
  for (size_t i = 0; i < kStatusGroups; ++i) all[2 + i] = page.groups[i].sequence;
  return all;
}

bool is_whole(const Sequences& sequences) {
  return std::none_of(sequences.begin(), sequences.end(), [](uint64_t sequence) { return sequence % 2 != 0; });
}

}  // namespace

RankStatus parse_status_page(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() != kStatusPageBytes)
    data_error("{} has {} bytes, a status page has {}", name, bytes.size(), kStatusPageBytes);
  const PlainStatusPage page = copy_of(bytes);
  RankStatus status = Parser(page, name).parse();
  if (!is_whole(sequences_of(page))) data_error("{} is being written", name);
  return status;
}

StatusReader::StatusReader(std::filesystem::path path) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (file_ < 0) io_error_errno(fmt::format("cannot open the status page {}", path_.string()));
}

StatusReader::~StatusReader() {
  if (file_ >= 0) ::close(file_);
}

StatusReader::StatusReader(StatusReader&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

StatusReader::Bytes StatusReader::copy() const {
  Bytes bytes{};
  const ssize_t count = ::pread(file_, bytes.data(), bytes.size(), 0);
  if (count < 0) io_error_errno(fmt::format("cannot read the status page {}", path_.string()));
  if (count != std::ssize(bytes))
    data_error("{} has {} bytes, a status page has {}", path_.string(), count, bytes.size());
  return bytes;
}

// Nobody says in which order a copy is made: it is good where the sequences were the same before and after.
RankStatus StatusReader::read() const {
  constexpr int kAttempts = 200;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const Sequences before = sequences_of(copy_of(copy()));
    const Bytes bytes = copy();
    const Sequences after = sequences_of(copy_of(copy()));
    if (is_whole(before) && before == after) return parse_status_page(bytes, path_.string());
    std::this_thread::yield();
  }
  data_error("{} was being written in each of {} attempts to read it", path_.string(), kAttempts);
}

void StatusReader::ask_to_stop() const {
  constexpr uint64_t kStop = 1;
  if (::pwrite(file_, &kStop, sizeof kStop, offsetof(PlainStatusPage, stop)) != sizeof kStop)
    io_error_errno(fmt::format("cannot write the status page {}", path_.string()));
}

}  // namespace megalith
