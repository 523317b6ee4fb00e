#include "data/tokenizer/bpe/bpe_merger.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "core/error.h"

namespace megalith::data {

void BpeMerger::merge(const BpeModel& model, std::string_view piece, std::vector<int32_t>& ids) {
  if (piece.size() <= kShortBytes) {
    merge_by_scan(model, piece, ids);
  } else if (piece.size() <= kWindowBytes) {
    merge_by_heap(model, piece, ids);
  } else {
    merge_by_windows(model, piece, ids, kWindowBytes);
  }
}

void BpeMerger::merge_by_scan(const BpeModel& model, std::string_view piece, std::vector<int32_t>& ids) {
  size_t count = piece.size();
  scan_ids_.resize(count);
  scan_merges_.resize(count);
  int32_t* const id = scan_ids_.data();
  Merge* const merge = scan_merges_.data();  // merge[i]: of tokens i and i + 1
  for (size_t i = 0; i < count; ++i) id[i] = model.byte_id(piece[i]);
  for (size_t i = 0; i + 1 < count; ++i) merge[i] = model.find_byte_merge(piece[i], piece[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) best = merge[i] < merge[best] ? i : best;
    if (merge[best] == kNoMerge) break;
    id[best] = id_of(merge[best]);
    std::copy(id + best + 2, id + count, id + best + 1);
    if (best + 2 < count) std::copy(merge + best + 2, merge + count - 1, merge + best + 1);
    --count;
    if (best + 1 < count) merge[best] = model.find_merge(id[best], id[best + 1]);
    if (best > 0) merge[best - 1] = model.find_merge(id[best - 1], id[best]);
  }
  ids.insert(ids.end(), id, id + count);
}

void BpeMerger::merge_by_heap(const BpeModel& model, std::string_view piece, std::vector<int32_t>& ids) {
  constexpr uint32_t kEnd = std::numeric_limits<uint32_t>::max();
  MEGALITH_CHECK(piece.size() < kEnd, "a piece of {} bytes", piece.size());
  const auto count = static_cast<uint32_t>(piece.size());
  const auto entry = [](Merge merge, uint32_t at) { return static_cast<uint64_t>(rank_of(merge)) << 32 | at; };
  nodes_.resize(count);
  heap_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    const Merge merge = i + 1 < count ? model.find_byte_merge(piece[i], piece[i + 1]) : kNoMerge;
    nodes_[i] = {merge, model.byte_id(piece[i]), i + 1 < count ? i + 1 : kEnd, i > 0 ? i - 1 : kEnd};
    if (merge != kNoMerge) heap_.push_back(entry(merge, i));
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  const auto renew = [&](uint32_t at) {
    Node& node = nodes_[at];
    node.merge = node.next == kEnd ? kNoMerge : model.find_merge(node.id, nodes_[node.next].id);
    if (node.merge == kNoMerge) return;
    heap_.push_back(entry(node.merge, at));
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  };
  while (!heap_.empty()) {
    const uint64_t top = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    const auto at = static_cast<uint32_t>(top);
    Node& node = nodes_[at];
    // An entry is stale when its node was merged away or has another neighbour by now.
    if (node.merge == kNoMerge || entry(node.merge, at) != top) continue;
    node.id = id_of(node.merge);
    nodes_[node.next].merge = kNoMerge;
    node.next = nodes_[node.next].next;
    if (node.next != kEnd) nodes_[node.next].previous = at;
    renew(at);
    if (node.previous != kEnd) renew(node.previous);
  }
  for (uint32_t at = 0; at != kEnd; at = nodes_[at].next) ids.push_back(nodes_[at].id);
}

// Exact, by this: ids are what a text merges to if and only if every two neighbours among them are what their own bytes
// merge to, for the first merge across a border would happen in the two neighbours alone as well. So two windows that
// overlap and have one token in common, at the same place, are joined there. The second window begins at a token of
// the first, which makes the common token almost always its first one; where there is none, the window grows.
size_t BpeMerger::extend(const BpeModel& model, const Extension& extension, std::vector<int32_t>& ids) {
  const auto& [piece, done, first_id, window, goes_on] = extension;
  const auto length = [&](int32_t id) { return model.tokens().bytes(id).size(); };
  for (size_t overlap = window / 8;; overlap *= 2) {
    size_t first = ids.size(), begin = done;  // of the overlap
    while (first > first_id && done - begin < overlap) begin -= length(ids[--first]);
    const size_t end = std::min(piece.size(), begin + window + 2 * (done - begin));
    window_ids_.clear();
    merge_by_heap(model, piece.substr(begin, end - begin), window_ids_);
    size_t old_index = first, old_begin = begin, new_index = 0, new_begin = begin;
    bool joined = false;
    while (!joined && old_index < ids.size() && new_index < window_ids_.size()) {
      if (old_begin == new_begin && ids[old_index] == window_ids_[new_index]) {
        joined = true;
      } else if (old_begin <= new_begin) {
        old_begin += length(ids[old_index++]);
      } else {
        new_begin += length(window_ids_[new_index++]);
      }
    }
    if (!joined && first > first_id) continue;
    // Without a common token the window reached back to the begin of the piece: it stands for all of it.
    MEGALITH_CHECK(joined || !goes_on, "merges of {} bytes depend on each other", done);
    ids.resize(joined ? old_index : first_id);
    ids.insert(ids.end(), window_ids_.begin() + static_cast<std::ptrdiff_t>(joined ? new_index : 0), window_ids_.end());
    return end;
  }
}

void BpeMerger::merge_by_windows(const BpeModel& model, std::string_view piece, std::vector<int32_t>& ids,
                                 size_t window) {
  const size_t first_id = ids.size();
  merge_by_heap(model, piece.substr(0, window), ids);
  for (size_t done = std::min(window, piece.size()); done < piece.size();) {
    done = extend(model, {.piece = piece, .done = done, .first_id = first_id, .window = window}, ids);
  }
}

}  // namespace megalith::data
