#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "resilience/messages.h"

namespace megalith::resilience {

// A rank that runs, as its node reported it last.
struct RankView {
  int64_t rank = 0;
  const PageReport* page = nullptr;        // null: there is none that can be trusted
  const ProcessReport* process = nullptr;  // null: /proc was not asked
  bool is_overdue = false;                 // no beat within the deadline of its section
};

struct Suspicion {
  std::vector<int64_t> ranks;  // rising; empty: nobody can be named
  std::string evidence;
};

// Who keeps the others waiting. The first rule that finds somebody decides: (1) stopped, or stuck in the kernel; (2)
// not inside a call, and not beating; (3) behind in a group of which others have entered a later call; (4) whom those
// that wait, wait for in the end.
Suspicion find_suspects(std::span<const RankView> ranks);

}  // namespace megalith::resilience
