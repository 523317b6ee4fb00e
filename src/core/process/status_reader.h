#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "core/process/rank_status.h"

namespace megalith {

constexpr size_t kStatusPageBytes = 4096;

// What the bytes of a page say, which may be anybody's: data error, with the name, for what a rank does not write.
RankStatus parse_status_page(std::span<const std::byte> bytes, const std::string& name);

// The status page of a rank (status_page.h), seen by who watches it. The rank need not be alive.
class StatusReader {
 public:
  // I/O error where there is none.
  explicit StatusReader(std::filesystem::path path);
  ~StatusReader();
  StatusReader(StatusReader&& other) noexcept;
  StatusReader& operator=(StatusReader&&) = delete;

  // Data error for a page that is foreign, of another version or damaged, and for one that was being written in every
  // attempt: of a rank that was stopped in the middle of it, too.
  RankStatus read() const;
  // The rank ends at its next step boundary, and saves. Cannot be taken back.
  void ask_to_stop() const;

 private:
  using Bytes = std::array<std::byte, kStatusPageBytes>;
  Bytes copy() const;

  std::filesystem::path path_;
  int file_;
};

}  // namespace megalith
