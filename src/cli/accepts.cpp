#include "cli/accepts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

namespace megalith::cli {

namespace {

std::string refusal(const std::string& accepted, const std::string& value) {
  return fmt::format("must be {}, not {}", accepted, value.empty() ? "empty" : value);
}

template <class Number, class Holds>
CLI::Validator number(const char* kind, const std::string& range, Holds holds) {
  const auto check = [kind, range, holds](const std::string& value) {
    Number parsed{};
    if (!CLI::detail::lexical_cast(value, parsed)) return refusal(kind, value);
    return holds(parsed) ? std::string() : refusal(range, value);
  };
  return {check, range};
}

template <class Holds>
CLI::Validator whole(const std::string& range, Holds holds) {
  return number<int64_t>("a whole number", range, holds);
}

template <class Holds>
CLI::Validator real(const std::string& range, Holds holds) {
  return number<double>("a number", range, [holds](double value) { return std::isfinite(value) && holds(value); });
}

// a, b or c
std::string list(const std::vector<std::string>& names) {
  if (names.size() == 1) return names[0];
  return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

}  // namespace

CLI::Validator at_least(int64_t least) {
  return whole(fmt::format("at least {}", least), [least](int64_t value) { return value >= least; });
}

CLI::Validator between(int64_t least, int64_t most) {
  return whole(fmt::format("{} to {}", least, most),
               [least, most](int64_t value) { return value >= least && value <= most; });
}

CLI::Validator at_least_real(double least) {
  return real(fmt::format("at least {}", least), [least](double value) { return value >= least; });
}

CLI::Validator above(double bound) {
  return real(fmt::format("above {}", bound), [bound](double value) { return value > bound; });
}

CLI::Validator between_real(double least, double most) {
  return real(fmt::format("{} to {}", least, most),
              [least, most](double value) { return value >= least && value <= most; });
}

CLI::Validator one_of(const std::vector<std::string>& names) {
  const auto check = [names](const std::string& value) {
    const bool known = std::find(names.begin(), names.end(), value) != names.end();
    return known ? std::string() : refusal(list(names), "'" + value + "'");
  };
  return {check, fmt::format("{}", fmt::join(names, "|"))};
}

CLI::Validator detail::replace_names(std::vector<std::pair<std::string, int64_t>> values) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  CLI::Validator known = one_of(names);
  const std::string shown = known.get_description();
  const auto replace = [values = std::move(values), known = std::move(known)](std::string& text) {
    const std::string problem = known(text);
    for (const auto& [name, value] : values) {
      if (problem.empty() && name == text) return text = std::to_string(value), std::string();
    }
    return problem;
  };
  return {replace, shown};
}

CLI::Validator size_in_bytes() {
  const auto parse = [](std::string& text) {
    const std::string given = text;
    try {
      const bool positive =
          !given.starts_with('-') && CLI::AsSizeValue(/*kb_is_1000=*/true)(text).empty() && text != "0";
      if (positive) return std::string();
    } catch (const CLI::Error&) {  // which says it in words of its own
    }
    return refusal("a size such as 500MB, 8GiB or 1000000", given);
  };
  return {parse, "500MB, 8GiB, ..."};
}

}  // namespace megalith::cli
