#pragma once

#include <cstdint>
#include <filesystem>

namespace megalith::observe {

// Cuts off what the event files of a run hold of steps that are about to be done again, since readers would show both.
// `steps` are done and `samples` consumed at the point to go on from. Files of others are left alone; one that cannot
// be cut is named in the log.
void rewind_tensorboard(const std::filesystem::path& directory, int64_t steps, int64_t samples);

}  // namespace megalith::observe
