#include "plan/memory_table.h"
#include "core/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace megalith::plan {

int64_t MemoryTable::total() const {
  int64_t sum = 0;
  for (const MemoryRow& row : rows) sum += row.bytes;
  return sum;
}

int64_t MemoryTable::bytes_of(const std::string& arena) const {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const MemoryRow& r) { return r.arena == arena; });
  return row == rows.end() ? 0 : row->bytes;
}

void MemoryTable::set(const std::string& arena, int64_t bytes) {
  for (MemoryRow& row : rows) {
    if (row.arena == arena) row.bytes = bytes;
  }
}

std::string MemoryTable::to_text() const {
  std::string text = fmt::format("  {:<16} {:>12}  {}\n", "memory", "size", "holds");
  for (const MemoryRow& row : rows) {
    if (row.bytes == 0) continue;
    text += fmt::format("  {:<16} {:>12}  {}\n", row.arena, bytes_in_words(row.bytes), row.holds);
  }
  return text + fmt::format("  {:<16} {:>12}\n", "total", bytes_in_words(total()));
}

}  // namespace megalith::plan
