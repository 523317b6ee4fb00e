#pragma once

#include <string>

// Paths that options name, looked at before the work begins.
namespace megalith::cli {

// User error unless there is a file to read; an empty path is none that was given.
void check_input_file(const char* option, const std::string& path);
// User error where the folder that a file is to go to is not there.
void check_output_file(const char* option, const std::string& path);

}  // namespace megalith::cli
