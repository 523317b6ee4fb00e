#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <type_traits>

namespace megalith {

// A status page as it lies in memory: Cell is std::atomic where a rank writes it, Plain in a copy of it.
//
// Each part has one writer and begins with a sequence that is odd while it is written. A writer stores with release
// order, so that a reader who finds a value also finds the odd sequence before it; the reader is status_reader.cpp.

template <class T>
using Plain = T;

constexpr uint64_t kStatusMagic = 0x31454741504c474d;  // "MGLPAGE1"
constexpr uint32_t kStatusVersion = 2;

constexpr size_t kStatusGroups = 10;
constexpr size_t kStatusRanks = 16;
constexpr size_t kStatusSections = 9;
// In words of eight characters, padded with zeros.
constexpr size_t kRunWords = 8;
constexpr size_t kNameWords = 3;
constexpr size_t kOperationWords = 2;
constexpr size_t kMessageWords = 64;

template <template <class> class Cell, size_t Words>
using TextCells = std::array<Cell<uint64_t>, Words>;

template <template <class> class Cell>
struct CallsCells {
  Cell<int64_t> entered{0};
  Cell<int64_t> finished{0};
};

template <template <class> class Cell>
struct alignas(64) GroupCells {
  Cell<uint64_t> sequence{0};
  TextCells<Cell, kNameWords> name{};
  Cell<uint64_t> members{0};
  Cell<int32_t> size{0};  // 0: there is no such group
  Cell<int32_t> member{0};
  CallsCells<Cell> collectives{};
  CallsCells<Cell> exchanges{};
  TextCells<Cell, kOperationWords> operation{};
  Cell<int64_t> bytes{0};
  std::array<Cell<int32_t>, 2> peers{};
};

template <template <class> class Cell>
struct alignas(64) EndingCells {
  Cell<uint64_t> sequence{0};
  Cell<uint32_t> outcome{0};  // 0: not ended; else 1 + RankStatus::Outcome
  Cell<uint32_t> kind{0};
  Cell<uint32_t> ranks_count{0};
  std::array<Cell<int32_t>, kStatusRanks> ranks{};
  TextCells<Cell, kMessageWords> message{};
};

// What the loop writes.
template <template <class> class Cell>
struct alignas(64) ProgressCells {
  Cell<uint64_t> sequence{0};
  Cell<int32_t> pid{0};
  Cell<uint32_t> section{0};
  Cell<uint64_t> start_ticks{0};
  Cell<double> section_began{0.0};
  std::array<Cell<double>, kStatusSections> longest{};
  Cell<int64_t> step{-1};
  Cell<int64_t> micro_batch{-1};
  Cell<double> working_seconds{0.0};
  Cell<int64_t> local_step{-1};
  Cell<int64_t> persistent_step{-1};
};

template <template <class> class Cell>
struct alignas(64) StatusPageCells {
  Cell<uint64_t> magic{kStatusMagic};
  Cell<uint32_t> version{kStatusVersion};
  Cell<int32_t> rank{0};
  Cell<int64_t> generation{0};
  TextCells<Cell, kRunWords> run{};
  ProgressCells<Cell> progress{};
  alignas(64) Cell<int64_t> beats{0};
  alignas(64) Cell<uint64_t> stop{0};  // by the monitor; not 0: the rank shall stop
  std::array<GroupCells<Cell>, kStatusGroups> groups{};
  EndingCells<Cell> ending{};
};

using PlainStatusPage = StatusPageCells<Plain>;
struct StatusPageBytes : StatusPageCells<std::atomic> {};

static_assert(sizeof(PlainStatusPage) == sizeof(StatusPageBytes) && sizeof(PlainStatusPage) <= 4096);
static_assert(std::is_trivially_copyable_v<PlainStatusPage> && std::is_standard_layout_v<PlainStatusPage>);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<double>::is_always_lock_free);

}  // namespace megalith
