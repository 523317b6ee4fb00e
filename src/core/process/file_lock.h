#pragma once

#include <filesystem>
#include <string_view>

#include "core/file.h"

namespace megalith {

// Files that several processes want. A lock lasts as long as its file is open.

enum class LockMode { shared, exclusive };
enum class LockResult {
  taken,
  busy,         // another process holds it
  unsupported,  // the file system has no locks
};

// Waits for others to let go.
LockResult lock(const File& file, LockMode mode);
// Takes the lock exclusively, or not.
LockResult try_lock(const File& file);

// Keeps others out as long as `file` lives. User error if another process holds it. File systems without locks let
// everybody in.
void lock_or_refuse(const File& file);

// replace_file() where several processes may do so at once; the last one wins.
void replace_file_among_many(const std::filesystem::path& path, std::string_view content);

// Removes what a kill in the middle of that left, unless somebody is at it.
void remove_stale_part(const std::filesystem::path& path);

}  // namespace megalith
