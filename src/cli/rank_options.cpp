#include "cli/rank_options.h"

#include <CLI/CLI.hpp>

#include "cli/accepts.h"

namespace megalith::cli {

void RankOptions::add_to(CLI::App& verb) {
  constexpr int kMost = 4096;
  verb.add_option("--nproc", nproc, "start this many ranks on this machine, or on each that a launcher started it on")
      ->check(between(1, kMost));
}

}  // namespace megalith::cli
