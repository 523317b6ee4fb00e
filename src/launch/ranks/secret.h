#pragma once

#include <filesystem>
#include <string>

#include "config/environment/environment.h"

namespace megalith::launch {

// The secret of a run's store, for all its machines: the content of MEGALITH_STORE_SECRET_FILE, or
// MEGALITH_STORE_SECRET; empty where neither is set. User error where both are, and for a file that others can read.
std::string secret_of_run(const config::Lookup& environment = config::process_environment);

// The content of a file that its owner alone can read, or, as Kubernetes shows a Secret to a pod that is not root, one
// of root's that a group of this process can read (0440). User error for any other.
std::string read_secret_file(const std::filesystem::path& path);

// 32 random bytes, as text.
std::string new_secret();
// The same in a new file of mode 0600.
void write_secret_file(const std::filesystem::path& path);

}  // namespace megalith::launch
