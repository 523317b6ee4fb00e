#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/file.h"

namespace megalith::checkpoint {

// The names that a directory of checkpoints consists of:
//   step-00000020/manifest.json
//   step-00000020/shard-g1-r00000.safetensors
//   latest_checkpointed_iteration.txt           the step committed last, for tools that know Megatron; here it only
//                                               tells a manifest that was lost from a save that did not finish
//   tokenizer/                                  see kept_tokenizer.h
//   trash-step-00000010-g3                      on its way out
// On the local tier, where no rank sees what all have written, each commits its own part:
//   step-00000020/part-g1-r00000.json
// A shard that was found damaged is set aside under its name and ".bad".

inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kTrackerName = "latest_checkpointed_iteration.txt";

struct ShardName {
  int64_t generation = 0;  // counts the attempts to save this step
  int64_t rank = 0;
};

inline constexpr std::string_view kBadSuffix = ".bad";

// Decimal digits and nothing else; nothing where they are more than fit.
std::optional<int64_t> parse_number(std::string_view text);
std::string step_name(int64_t step);
std::optional<int64_t> parse_step_name(std::string_view name);
std::string shard_name(const ShardName& shard);
std::optional<ShardName> parse_shard_name(std::string_view name);
std::string part_name(const ShardName& shard);
std::optional<ShardName> parse_part_name(std::string_view name);
// Of one of the files that a step's directory may hold.
bool is_file_of_step(std::string_view name);
std::string trash_name(int64_t step, int64_t count);
bool is_trash_name(std::string_view name);

// A regular file, never reached through a link. Other things are a data error.
File open_plain_file(const std::filesystem::path& path);
// Data error unless there is such a file of this size.
void check_plain_file(const std::filesystem::path& path, int64_t bytes);
std::string read_plain_text(const std::filesystem::path& path);
// True for a directory that is not a link to one.
bool is_plain_directory(const std::filesystem::path& path);

}  // namespace megalith::checkpoint
