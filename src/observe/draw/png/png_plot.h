#pragma once

#include <string>

#include "observe/draw/bars.h"
#include "observe/draw/plot.h"

namespace megalith::observe {

// A picture with its title and its legend as the bytes of a PNG file, drawn without a browser.
std::string png_picture(const Plot& plot, bool dark);
std::string png_picture(const Bars& bars, bool dark);

}  // namespace megalith::observe
