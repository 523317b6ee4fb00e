#pragma once

#include <filesystem>
#include <string_view>

#include "core/file.h"

namespace megalith::data {

// A `.part` file, for whom the umask says, emptied if it was there.
File open_part_file(const std::filesystem::path& path);

void rename_over(const std::filesystem::path& from, const std::filesystem::path& to);

// Renames over `to` and makes that durable.
void publish(const std::filesystem::path& part, const std::filesystem::path& to);

// Writes the text to `path`.part and publishes it.
void publish_text(const std::filesystem::path& path, std::string_view text);
// The same where several processes may do so at once; the last one wins.
void publish_text_among_many(const std::filesystem::path& path, std::string_view text);

// Removes what a kill in the middle of that left, unless somebody is at it.
void remove_stale_part(const std::filesystem::path& path);

void truncate(const File& file, int64_t size);

// Keeps others out as long as `file` lives. User error if another process holds it. File systems without locks let
// everybody in.
void lock_or_refuse(const File& file);

void remove_if_there(const std::filesystem::path& path);

// -1 if there is none.
int64_t size_if_there(const std::filesystem::path& path);

// Creates the folder of an output, shared as the umask says.
void make_parent_directory(const std::filesystem::path& path);

}  // namespace megalith::data
