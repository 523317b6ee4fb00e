#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "observe/report_pictures.h"

namespace megalith::observe {

// The whole HTML page: styles, pictures and a short script are inside, and a content security policy lets the browser
// fetch nothing.
std::string report_page(const std::vector<ReportedRun>& runs, const std::vector<Picture>& pictures);

// What the page is made with: its style sheet, and the script that shows values where one points, switches axes and
// saves pictures.
std::string report_style();
std::string_view report_script();

}  // namespace megalith::observe
