#pragma once

#include <string>

#include "parallel/layout.h"
#include "parallel/placement/interval.h"

namespace megalith::parallel {

// Why `layers` layers cannot be divided as the layout says; empty when they can.
std::string layer_split_problem(const Layout& layout, int64_t layers);

// Layers of every chunk, by the chunk's number in the whole model. The layout must be able to divide them.
std::vector<int64_t> layers_per_virtual_stage(const Layout& layout, int64_t layers);

// The layers of one chunk of one stage.
Interval layers_of(const Layout& layout, int64_t layers, const Home& home);
Home home_of_layer(const Layout& layout, int64_t layers, int64_t layer);

}  // namespace megalith::parallel
