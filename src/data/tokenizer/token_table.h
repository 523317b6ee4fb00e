#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::data {

// The bytes of every id, and the way back for the ids that were indexed. Read by many threads at once.
class TokenTable {
 public:
  // `tokens` by id; an empty one is a hole.
  explicit TokenTable(const std::vector<std::string>& tokens);

  int64_t size() const { return static_cast<int64_t>(begins_.size()) - 1; }
  std::string_view bytes(int32_t id) const {
    const uint32_t begin = begins_[static_cast<size_t>(id)];
    return {bytes_.data() + begin, begins_[static_cast<size_t>(id) + 1] - begin};
  }
  size_t longest() const { return longest_; }

  // Makes find() know the id. Its bytes must not be indexed under another one.
  void index(int32_t id);
  // The indexed id with these bytes; -1 without one.
  int32_t find(std::string_view bytes) const;

 private:
  struct Slot {
    uint32_t hash = 0;
    int32_t id = -1;
  };
  Slot& slot_of(std::string_view bytes, uint32_t hash);

  std::string bytes_;
  std::vector<uint32_t> begins_;
  std::vector<Slot> slots_;  // open addressing, never more than half full
  size_t longest_ = 0;
};

}  // namespace megalith::data
