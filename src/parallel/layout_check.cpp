#include "parallel/layout_check.h"

#include <algorithm>
#include <cmath>

#include "parallel/layer_split.h"
#include "parallel/schedule/schedule.h"

namespace megalith::parallel {

namespace {

class Checker {
 public:
  Checker(const Layout& layout, const LayoutDemands& demands) : layout_(layout), demands_(demands) {}

  std::vector<std::string> problems() {
    if (!sizes_are_positive()) return std::move(problems_);
    check_ranks();
    check_tensor();
    check_tokens();
    add(layer_split_problem(layout_, demands_.layers));
    check_batch();
    if (layout_.shards_weights && layout_.pipeline > 1)
      add(fmt::format("sharded weights are for pipeline 1, not {}: a stage needs its own through the whole step",
                      layout_.pipeline));
    return std::move(problems_);
  }

 private:
  void add(std::string problem) {
    if (!problem.empty()) problems_.push_back(std::move(problem));
  }

  bool sizes_are_positive() {
    const int64_t smallest =
        std::min({layout_.tensor, layout_.pipeline, layout_.chunks, layout_.context, layout_.data});
    if (smallest < 1) add("every size of a layout is at least 1");
    return smallest >= 1;
  }

  void check_ranks() {
    if (layout_.world() == demands_.ranks) return;
    const int64_t copy = layout_.tensor * layout_.pipeline * layout_.context;
    const int64_t below = demands_.ranks / copy * copy;
    add(fmt::format(
        "one copy of the model takes {} ranks (tensor {} x pipeline {} x context {}), and the run has {}: use {}", copy,
        layout_.tensor, layout_.pipeline, layout_.context, demands_.ranks,
        below == demands_.ranks ? fmt::format("data {}", below / copy)
        : below > 0             ? fmt::format("{} or {} ranks", below, below + copy)
                                : fmt::format("{} ranks", copy)));
  }

  void must_divide(const char* what, int64_t size) {
    if (size % layout_.tensor == 0) return;
    add(fmt::format("tensor {} does not divide {} {}", layout_.tensor, size, what));
  }

  void check_tensor() {
    if (layout_.tensor > demands_.heads) {
      add(fmt::format("tensor {} is more than the {} attention heads", layout_.tensor, demands_.heads));
    } else {
      must_divide("attention heads", demands_.heads);
    }
    if (demands_.kv_heads % layout_.tensor != 0 && layout_.tensor % demands_.kv_heads != 0)
      add(fmt::format("of tensor {} and {} key-value heads one must divide the other", layout_.tensor,
                      demands_.kv_heads));
    must_divide("channels of the MLP", demands_.ffn);
    must_divide("rows of the padded vocabulary", demands_.padded_vocabulary);
  }

  void check_tokens() {
    if (layout_.context > 1 && demands_.length % (2 * layout_.context) != 0) {
      const int64_t unit = 2 * layout_.context;
      add(fmt::format("context {} cuts {} tokens into {} equal blocks: use a multiple of {}", layout_.context,
                      demands_.length, unit, unit));
      return;
    }
    const int64_t tokens = demands_.micro_batch * demands_.length / layout_.context;
    if (layout_.sequence_parallel && tokens % layout_.tensor != 0)
      add(fmt::format("sequence parallelism cuts the {} tokens of a rank's micro batch into {} equal parts", tokens,
                      layout_.tensor));
  }

  void check_batch() {
    const int64_t unit = demands_.micro_batch * layout_.data;
    if (demands_.global_batch % unit == 0) {
      add(schedule_problem(layout_, demands_.global_batch / unit));
      return;
    }
    const int64_t below = demands_.global_batch / unit * unit;
    add(fmt::format("a global batch of {} is not a multiple of micro batch {} x data {}: use {}{}",
                    demands_.global_batch, demands_.micro_batch, layout_.data,
                    below > 0 ? fmt::format("{} or {}", below, below + unit) : std::to_string(unit),
                    smaller_micro_batch()));
  }

  std::string smaller_micro_batch() const {
    for (int64_t micro = demands_.micro_batch - 1; micro > 0; --micro) {
      if (demands_.global_batch % (micro * layout_.data) == 0) return fmt::format(", or micro batch {}", micro);
    }
    return "";
  }

  const Layout& layout_;
  const LayoutDemands& demands_;
  std::vector<std::string> problems_;
};

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> found;
  for (int64_t divisor = 1; divisor <= number; ++divisor) {
    if (number % divisor == 0) found.push_back(divisor);
  }
  return found;
}

std::vector<LayerSplit> splits_to_try(const LayerSplit& asked, int64_t pipeline) {
  std::vector<LayerSplit> splits = {asked};
  const auto add = [&](const LayerSplit& other) {
    if (other != asked) splits.push_back(other);
  };
  add({});
  if (pipeline > 1) add({.counts_embedding = true, .counts_loss = true});
  return splits;
}

// Every way to give the ranks to the axes, and to cut stages into chunks, that works.
std::vector<Layout> working_layouts(const Layout& asked, const LayoutDemands& demands) {
  std::vector<Layout> working;
  Layout tried = asked;
  const auto try_chunks = [&] {
    const int64_t most = tried.pipeline == 1 ? 1 : ceil_div(demands.layers, tried.pipeline);
    for (tried.chunks = 1; tried.chunks <= most; ++tried.chunks) {
      for (const LayerSplit& split : splits_to_try(asked.split, tried.pipeline)) {
        tried.split = split;
        if (layout_problems(tried, demands).empty()) working.push_back(tried);
      }
    }
  };
  for (const int64_t tensor : divisors(demands.ranks)) {
    if (demands.heads % tensor != 0) continue;
    tried.tensor = tensor;
    for (const int64_t pipeline : divisors(demands.ranks / tensor)) {
      tried.pipeline = pipeline;
      for (const int64_t context : divisors(demands.ranks / (tensor * pipeline))) {
        tried.context = context;
        tried.data = demands.ranks / (tensor * pipeline * context);
        try_chunks();
      }
    }
  }
  return working;
}

double distance(const Layout& a, const Layout& b) {
  const auto steps = [](int64_t x, int64_t y) {
    return std::abs(std::log2(static_cast<double>(x) / static_cast<double>(std::max<int64_t>(y, 1))));
  };
  constexpr double kOtherSplit = 0.5;
  return steps(a.tensor, b.tensor) + steps(a.pipeline, b.pipeline) + steps(a.context, b.context) +
         steps(a.chunks, b.chunks) + (a.split == b.split ? 0.0 : kOtherSplit);
}

std::string offered(const Layout& layout, const DescribeLayout& describe) {
  return to_string(layout) + (describe ? ": " + describe(layout) : "");
}

// For a run whose number of ranks no layout can use.
std::string nearest_rank_count(const Layout& layout, LayoutDemands demands, const DescribeLayout& describe) {
  constexpr int64_t kFarthest = 64;
  const int64_t asked = demands.ranks;
  for (int64_t away = 1; away <= kFarthest; ++away) {
    for (const int64_t ranks : {asked - away, asked + away}) {
      if (ranks < 1) continue;
      demands.ranks = ranks;
      const std::vector<Layout> found = nearest_layouts(layout, demands, 1);
      if (!found.empty())
        return fmt::format("no layout works on {} ranks; on {}: {}", asked, ranks, offered(found.front(), describe));
    }
  }
  return fmt::format("no layout works on {} ranks or near it", asked);
}

std::string advice(const Layout& layout, const LayoutDemands& demands, const DescribeLayout& describe) {
  constexpr size_t kShown = 3;
  const std::vector<Layout> found = nearest_layouts(layout, demands, kShown);
  if (found.empty()) return nearest_rank_count(layout, demands, describe);
  std::string text = fmt::format("layouts near it that work on {} ranks:", demands.ranks);
  for (const Layout& near : found) text += "\n    " + offered(near, describe);
  return text;
}

}  // namespace

std::vector<std::string> layout_problems(const Layout& layout, const LayoutDemands& demands) {
  return Checker(layout, demands).problems();
}

std::vector<Layout> nearest_layouts(const Layout& layout, const LayoutDemands& demands, size_t count) {
  std::vector<Layout> found = working_layouts(layout, demands);
  std::stable_sort(found.begin(), found.end(),
                   [&](const Layout& a, const Layout& b) { return distance(a, layout) < distance(b, layout); });
  if (found.size() > count) found.resize(count);
  return found;
}

void check_layout(const Layout& layout, const LayoutDemands& demands, const DescribeLayout& describe) {
  const std::vector<std::string> problems = layout_problems(layout, demands);
  if (problems.empty()) return;
  std::string text = fmt::format("the layout {} cannot work:", to_string(layout));
  for (const std::string& problem : problems) text += "\n  " + problem;
  user_error("{}\n  {}", text, advice(layout, demands, describe));
}

}  // namespace megalith::parallel
