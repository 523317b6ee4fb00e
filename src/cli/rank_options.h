#pragma once

#include <CLI/App.hpp>

namespace megalith::cli {

// --nproc, of verbs that several ranks work on together.
struct RankOptions {
  int nproc = 0;  // 0: this process is a rank, or alone

  void add_to(CLI::App& verb);
  bool launches() const { return nproc > 0; }
};

}  // namespace megalith::cli
