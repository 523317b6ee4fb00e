#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/train_options.h"
#include "launch/launch.h"

namespace megalith::cli {

// The words after `--`, understood as this program understands its own: user error, in the same words, where it does
// not.
struct LaunchedVerb {
  std::vector<std::string> verb;       // {"data", "tokenize"}
  std::vector<std::string> arguments;  // the rest
  launch::Work work = launch::Work::single;
  int64_t nproc = 0;                                          // as they say; 0: they do not
  std::map<std::string, std::vector<std::string>> options{};  // --input: those that were given, with their values
  bool takes_list = false;                                    // --input-list
  std::shared_ptr<TrainOptions> train{};                      // of `train`; null: another verb
};
LaunchedVerb understand_verb(const std::vector<std::string>& words);

// What stands between `--` and `--`: several verbs.
std::vector<std::vector<std::string>> split_verbs(const std::vector<std::string>& words);

// The arguments without --nproc, and with other files in place of those that -c names, in their order.
std::vector<std::string> with_files(const std::vector<std::string>& arguments, const std::vector<std::string>& files);

}  // namespace megalith::cli
