#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace megalith::plan {

// The row for the program itself and its libraries.
constexpr const char* kOutsideArenas = "outside arenas";

struct MemoryRow {
  std::string arena;
  int64_t bytes = 0;
  std::string holds;
};

struct MemoryTable {
  std::vector<MemoryRow> rows;

  int64_t total() const;
  // Bytes of a row; 0 where there is none.
  int64_t bytes_of(const std::string& arena) const;
  // Replaces the bytes of a row that there is.
  void set(const std::string& arena, int64_t bytes);
  std::string to_text() const;
};

}  // namespace megalith::plan
