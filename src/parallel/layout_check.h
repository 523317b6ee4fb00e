#pragma once

#include <functional>
#include <string>
#include <vector>

#include "parallel/layout.h"

namespace megalith::parallel {

// What a model, a batch and a machine ask of a layout.
struct LayoutDemands {
  int64_t ranks = 1;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t ffn = 0;
  int64_t padded_vocabulary = 0;
  int64_t length = 0;
  int64_t micro_batch = 1;
  int64_t global_batch = 1;
};

// Why the layout cannot work, one reason each; empty when it can.
std::vector<std::string> layout_problems(const Layout& layout, const LayoutDemands& demands);

// Layouts for the same demands that work, nearest first.
std::vector<Layout> nearest_layouts(const Layout& layout, const LayoutDemands& demands, size_t count);

// What to say of a layout that is offered instead, for example its memory.
using DescribeLayout = std::function<std::string(const Layout&)>;

// A user error with all reasons and the nearest layouts that would work, before anything is allocated.
void check_layout(const Layout& layout, const LayoutDemands& demands, const DescribeLayout& describe = {});

}  // namespace megalith::parallel
