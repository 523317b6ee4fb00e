#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "data/tokenizer/bpe/bpe_model.h"

namespace megalith::data {

// Merges the bytes of a piece: lowest rank first, leftmost first among equals. Holds scratch memory, so one per thread.
class BpeMerger {
 public:
  // Up to here a scan for the least rank beats a heap.
  static constexpr size_t kShortBytes = 32;
  // Longer pieces are merged in windows of this size, so that memory and cache misses do not grow with them.
  static constexpr size_t kWindowBytes = size_t{1} << 11;

  // Appends the ids of a piece that is not empty.
  void merge(const BpeModel& model, std::string_view piece, std::vector<int32_t>& ids);

  // The roads that merge() chooses from; all give the same ids.
  void merge_by_scan(const BpeModel& model, std::string_view piece, std::vector<int32_t>& ids);
  void merge_by_heap(const BpeModel& model, std::string_view piece, std::vector<int32_t>& ids);
  void merge_by_windows(const BpeModel& model, std::string_view piece, std::vector<int32_t>& ids, size_t window);

  // One window more: `ids` from `first_id` on are what the first `done` bytes of the piece merge to, and then what its
  // first bytes up to the returned number do. `first_id` is where the piece begins, or with `goes_on` a token within a
  // longer one, whose earlier ids are gone: internal error if those would have to change.
  struct Extension {
    std::string_view piece;
    size_t done = 0;
    size_t first_id = 0;
    size_t window = kWindowBytes;
    bool goes_on = false;
  };
  size_t extend(const BpeModel& model, const Extension& extension, std::vector<int32_t>& ids);

 private:
  struct Node {
    Merge merge;  // with the next node
    int32_t id;
    uint32_t next;
    uint32_t previous;
  };

  std::vector<int32_t> scan_ids_;
  std::vector<Merge> scan_merges_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> heap_;  // rank above the index of the left node
  std::vector<int32_t> window_ids_;
};

}  // namespace megalith::data
