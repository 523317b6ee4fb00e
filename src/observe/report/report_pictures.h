#pragma once

#include <string>
#include <variant>
#include <vector>

#include "observe/draw/bars.h"
#include "observe/draw/plot.h"
#include "observe/report/report_run.h"

namespace megalith::observe {

struct Picture {
  std::string section;  // of the page
  std::variant<Plot, Bars> drawn;
};

// Every picture that the runs have data for, in the order of the page. One run is drawn in detail, several are laid
// over each other.
std::vector<Picture> pictures_of(const std::vector<ReportedRun>& runs);

}  // namespace megalith::observe
