#pragma once

#include <string>

#include "observe/draw/bars.h"
#include "observe/draw/plot.h"

namespace megalith::observe {

// A picture as a <figure> with its title, its legend and an <svg> that fills the width it gets. Long series are thinned
// to what can be seen, keeping the extremes. A plot that offers a logarithmic axis holds both views. The figure carries
// its data for the page's script, which shows values where one points and saves it as PNG; without a script it is
// complete but still.
std::string svg_figure(const Plot& plot);
std::string svg_figure(const Bars& bars);

}  // namespace megalith::observe
