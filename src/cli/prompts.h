#pragma once

#include <string>
#include <vector>

namespace megalith::cli {

// The prompts of a file, one a line; "-" is standard input. Lines of a file whose name ends in .jsonl are JSON objects
// with the text under "prompt" or "text", so that a prompt can have several lines. Blank lines are no prompts. User
// error for a file that holds none.
std::vector<std::string> read_prompts(const std::string& file);

}  // namespace megalith::cli
