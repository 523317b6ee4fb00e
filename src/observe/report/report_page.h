#pragma once

#include <string>
#include <vector>

#include "observe/report/report_pictures.h"

namespace megalith::observe {

// The whole HTML page: styles, pictures and a short script are inside, and a content security policy lets the browser
// fetch nothing.
std::string report_page(const std::vector<ReportedRun>& runs, const std::vector<Picture>& pictures);

}  // namespace megalith::observe
