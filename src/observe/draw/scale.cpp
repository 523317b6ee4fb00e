#include "observe/draw/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace megalith::observe {

namespace {

std::vector<double> log_ticks(double low, double high, int count) {
  std::vector<double> ticks;
  const double decades = std::log10(high / low);
  const bool every_decade_only = decades > count;
  for (double power = std::floor(std::log10(low)); power <= std::ceil(std::log10(high)); ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (every_decade_only && factor != 1.0) continue;
      const double tick = factor * std::pow(10.0, power);
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push_back(tick);
    }
  }
  return ticks;
}

}  // namespace

void Scale::take(double value) {
  if (!std::isfinite(value) || (logarithmic && value < std::numeric_limits<double>::min())) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

void Scale::make_usable() {
  if (low > high) low = logarithmic ? 1.0 : 0.0, high = logarithmic ? 10.0 : 1.0;
  if (low < high) return;
  const double margin = low == 0.0 ? 1.0 : std::abs(low) * 0.1;
  low -= margin;
  high += margin;
}

double Scale::share_of(double value) const {
  // Halved first: the difference of two huge numbers may not be a number.
  if (!logarithmic) return (value / 2 - low / 2) / (high / 2 - low / 2);
  if (value <= 0.0) return -std::numeric_limits<double>::infinity();
  return std::log(value / low) / std::log(high / low);
}

std::vector<double> Scale::ticks(int count) const {
  if (!logarithmic) return nice_ticks(low, high, count);
  std::vector<double> ticks = log_ticks(low, high, count);
  if (ticks.size() >= 3) return ticks;
  // Less than a decade: the numbers of a linear axis say more.
  ticks = nice_ticks(low, high, count + 3);
  std::erase_if(ticks, [&](double tick) { return tick < low || tick > high; });
  return ticks;
}

std::vector<double> nice_ticks(double low, double high, int count) {
  const double rough = (high - low) / std::max(1, count);
  if (!std::isnormal(rough) || rough < 0.0) return {low};
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10.0 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9);
  const double last = std::ceil(high / step - 1e-9);
  for (double i = first; i <= last && ticks.size() < 100; ++i) ticks.push_back(i == 0.0 ? 0.0 : i * step);
  return ticks;
}

namespace {

// "1.5e-4": three digits, and no zero that says nothing.
std::string with_exponent(double number) {
  const std::string text = fmt::format("{:.2e}", number);
  const size_t e = text.find('e');
  std::string digits = text.substr(0, e);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits.pop_back();
  return fmt::format("{}e{}", digits, std::stoi(text.substr(e + 1)));
}

constexpr double kSmall = 0.99e-4;  // smaller ones have too many zeros to be read

}  // namespace

std::string short_number(double number) {
  const double size = std::abs(number);
  for (const auto& [unit, letter] :
       {std::pair(1e12, 'T'), std::pair(1e9, 'G'), std::pair(1e6, 'M'), std::pair(1e3, 'k')}) {
    if (size >= unit && size < unit * 1e3) return fmt::format("{:.4g}{}", number / unit, letter);
  }
  return size > 0.0 && size < kSmall ? with_exponent(number) : fmt::format("{:.4g}", number);
}

std::string axis_label(double tick, const std::vector<double>& ticks) {
  const auto is_small = [](double one) { return one != 0.0 && std::abs(one) < kSmall; };
  const bool has_small = std::any_of(ticks.begin(), ticks.end(), is_small);
  return has_small && tick != 0.0 && std::abs(tick) < 1.0 ? with_exponent(tick) : short_number(tick);
}

}  // namespace megalith::observe
