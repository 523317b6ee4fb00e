#include "ops/operands/scales.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/cases/op_case.h"

namespace megalith::ops::testing {

namespace {

struct Case {
  int64_t slots;
  int64_t history;  // 0: none
};

// Slots on whatever device the operation runs on: E4M3 and E5M2 in turn.
struct Slots {
  Slots(const Case& c, const Named& in)
      : amax(vector_of(DType::i32, bits_of(in.at("amax")))),
        largest(vector_of(DType::f32, largest_of_slots(c.slots))),
        scale(vector_of(DType::f32, in.at("scale"))),
        inverse(DType::f32, c.slots, 1, 3, inverses_of(in.at("scale"))),
        history(DType::f32, c.history > 0 ? c.slots : 0, c.history, 0, in.at("history")) {}

  static Values bits_of(const Values& amax) {
    Values bits;
    for (const double a : amax) bits.push_back(std::bit_cast<int32_t>(static_cast<float>(a)));
    return bits;
  }
  static Values largest_of_slots(int64_t slots) {
    Values largest;
    for (int64_t i = 0; i < slots; ++i) largest.push_back(ops::largest_of(i % 2 == 0 ? DType::e4m3 : DType::e5m2));
    return largest;
  }
  static Values inverses_of(Values scales) {
    for (double& scale : scales) scale = 1.0 / scale;
    return scales;
  }

  Scales scales() const {
    return {.amax = amax.vector(),
            .largest = largest.vector(),
            .scale = scale.vector(),
            .inverse = inverse.tensor(),
            .history = history.tensor().elements() > 0 ? history.tensor() : Tensor()};
  }

  Buffer amax, largest, scale, inverse, history;
};

// One of four slots has seen nothing, and scales are powers of two around what the amax asks for.
Named inputs_of(const Case& c) {
  Named in{{"amax", random_values(c.slots, 1)},
           {"scale", random_values(c.slots, 2)},
           {"history", random_values(c.slots * c.history, 3)}};
  for (double& scale : in["scale"]) scale = std::exp2(std::round(8.0 + 2.0 * scale));
  for (double& amax : in["history"]) amax = std::fabs(amax);
  for (size_t i = 0; i < in["amax"].size(); ++i) in["amax"][i] = i % 4 == 3 ? 0.0 : std::fabs(in["amax"][i]);
  return in;
}

// The amax of some slots is replaced.
std::function<Named()> with_amax(const Case& c, const std::map<size_t, double>& others) {
  return [c, others] {
    Named in = inputs_of(c);
    for (const auto& [slot, amax] : others) in["amax"][slot] = amax;
    return in;
  };
}

OpCase inspect_case(const Case& c, const std::map<size_t, double>& others) {
  return {.operation = "inspect_amax",
          .shape = fmt::format("{} slots, {} replaced", c.slots, others.size()),
          .run =
              [c](Stream& stream, DType, const Named& in) {
                const Slots slots(c, in);
                const Placed<double> norm(2.0);
                const Placed<double> saturations(9.0);
                const Buffer findings(DType::i32, 1, c.slots);
                inspect_amax(stream, {.scales = slots.scales(),
                                      .squared_norm = norm.data(),
                                      .findings = findings.vector(),
                                      .saturations = saturations.data()});
                return Named{{"is nan", {std::isnan(norm.value()) ? 1.0 : 0.0}},
                             {"saturations", {saturations.value()}},
                             {"findings", findings.values()}};
              },
          .inputs = with_amax(c, others),
          .expected =
              [](const Named& in) {
                const Values largest = Slots::largest_of_slots(static_cast<int64_t>(in.at("amax").size()));
                Named out{{"is nan", {0.0}}, {"saturations", {0.0}}, {"findings", {}}};
                for (size_t i = 0; i < largest.size(); ++i) {
                  const double amax = in.at("amax")[i];
                  const bool is_saturated = std::isfinite(amax) && amax * in.at("scale")[i] > largest[i];
                  const Finding finding = is_saturated ? Finding::saturated : Finding::none;
                  out["findings"].push_back(static_cast<double>(std::isfinite(amax) ? finding : Finding::not_finite));
                  out["saturations"][0] += is_saturated ? 1.0 : 0.0;
                  if (!std::isfinite(amax)) out["is nan"] = {1.0};
                }
                return out;
              },
          .is_exact = true};
}

double scale_for(double amax, double limit) {
  return amax == 0.0 ? 1.0 : std::exp2(std::clamp(std::floor(std::log2(limit / amax)), -126.0, 126.0));
}

struct Rule {
  int margin = 0;
  bool most_recent = false;
  Remember remember = Remember::as_newest;
};

Named naive_update(const Case& c, const Rule& rule, const Named& in) {
  const Values largest = Slots::largest_of_slots(c.slots);
  Named out{{"amax", Values(largest.size(), 0.0)}, {"scale", in.at("scale")}, {"history", in.at("history")}};
  for (size_t i = 0; i < largest.size(); ++i) {
    const double amax = in.at("amax")[i];
    if (!std::isfinite(amax)) continue;
    double seen = amax;
    if (c.history > 0) {
      const auto first = out["history"].begin() + static_cast<std::ptrdiff_t>(i) * c.history;
      const auto last = first + c.history;
      if (rule.remember == Remember::as_newest) std::copy_backward(first, last - 1, last);
      if (rule.remember != Remember::not_at_all) *first = amax;
      seen = rule.most_recent ? *first : *std::max_element(first, last);
    }
    out["scale"][i] = scale_for(seen, std::ldexp(largest[i], -rule.margin));
  }
  out["inverse"] = Slots::inverses_of(out["scale"]);
  if (c.history == 0) out.erase("history");
  return out;
}

OpCase update_case(const Case& c, const Rule& rule, const std::map<size_t, double>& others = {}) {
  return {.operation = "update_scales",
          .shape = fmt::format("{} slots of {} steps, margin {}{}, remember {}, {} replaced", c.slots, c.history,
                               rule.margin, rule.most_recent ? ", most recent" : "", static_cast<int>(rule.remember),
                               others.size()),
          .run =
              [c, rule](Stream& stream, DType, const Named& in) {
                const Slots slots(c, in);
                update_scales(stream, {.scales = slots.scales(),
                                       .margin = rule.margin,
                                       .most_recent = rule.most_recent,
                                       .remember = rule.remember});
                Named out{{"amax", slots.amax.values()},
                          {"scale", slots.scale.values()},
                          {"inverse", slots.inverse.values()}};
                if (c.history > 0) out["history"] = slots.history.values();
                return out;
              },
          .inputs = with_amax(c, others),
          .expected = [c, rule](const Named& in) { return naive_update(c, rule, in); },
          .is_exact = true};
}

}  // namespace

OpCases scales_cases(Size size) {
  if (size == Size::large) {
    constexpr Case kLarge{1200, 1024};
    return {inspect_case(kLarge, {}), update_case(kLarge, {})};
  }
  const double infinity = std::numeric_limits<double>::infinity();
  OpCases cases;
  for (const int64_t slots : {4, 12, 1200}) {
    cases.push_back(inspect_case({slots, 3}, {}));
    cases.push_back(inspect_case({slots, 3}, {{1, infinity}, {2, 1e30}}));
    for (const Remember remember : {Remember::as_newest, Remember::in_place, Remember::not_at_all}) {
      for (const bool most_recent : {false, true})
        cases.push_back(update_case({slots, 5}, {.margin = 2, .most_recent = most_recent, .remember = remember}));
    }
    cases.push_back(update_case({slots, 1}, {}, {{0, 0x1p-126}, {1, 0x1.8p126}, {2, infinity}}));
    cases.push_back(update_case({slots, 0}, {.margin = 1}));
  }
  return cases;
}

}  // namespace megalith::ops::testing
