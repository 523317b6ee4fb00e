#pragma once

#include <string>
#include <vector>

#include "engine/stage_program.h"

namespace megalith::plan {

struct Picture {
  std::string file;  // "schedule.svg"
  std::string svg;
};

// What a layout looks like: its ranks, with those that `rank` works with; what each pipeline stage does when, where
// there are several; and who computes what of a sample, where ranks share it. The layout must work.
std::vector<Picture> draw_layout(const engine::StageRequest& request, int rank);

std::string draw_mesh(const parallel::Layout& layout, int rank);
std::string draw_schedule(const engine::StageRequest& request);
std::string draw_context(int64_t ranks);

}  // namespace megalith::plan
