#include "ops/vocabulary/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/rng.h"
#include "ops/cases/cross_entropy.h"

namespace megalith::ops::testing {

namespace {

using Case = CrossEntropyCase;
using PartsCase = CrossEntropyPartsCase;

const std::vector<Case> kSmall = {{1, 1, 1},         {1, 5, 5},           {3, 17, 24, 3},    {4, 17, 24, 3},
                                  {7, 100, 128},     {40, 5003, 5120, 1}, {2, 40000, 40001}, {2, 9000, 9008},
                                  {3, 50257, 50304}, {2, 128256, 128256}, {5, 1000, 1024, 8}};
const std::vector<Case> kLarge = {{256, 50257, 50304}};

const std::vector<PartsCase> kSmallParts = {
    {1, 1, 1, 1},       {3, 17, 1, 24, 3},      {4, 5, 2, 3},      {4, 17, 3, 8, 3},     {7, 100, 2, 64},
    {5, 100, 3, 40, 1}, {6, 33, 4, 16},  // the last: padding alone
    {4, 8, 3, 8, 8},    {40, 5003, 4, 1280, 1}, {9, 1000, 4, 256}, {3, 50257, 3, 16768}, {2, 128256, 4, 32064}};
const std::vector<PartsCase> kLargeParts = {{256, 50257, 4, 12576}};

constexpr double kGradientScale = 0.25;

// The backward pass of `run`, which makes a gradient of the logits. The row weights are the seed of the loss, so the
// seed goes there.
Runner seeded_backward(Runner run) {
  return [run = std::move(run)](Stream& stream, DType dtype, const Named& in) {
    Named seeded = in;
    for (size_t r = 0; r < seeded["weights"].size(); ++r) {
      seeded["weights"][r] *= in.at("dlosses")[r] / kGradientScale;
    }
    return Named{{"dlogits", run(stream, dtype, seeded).at("logits")}};
  };
}

// NaN equals NaN.
bool is_same(const Values& a, const Values& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

constexpr int64_t kMostDifferentiated = 1000;

void add_case(OpCases& cases, const Case& c, bool with_gradient) {
  const bool is_differentiated = !with_gradient && c.rows * c.padded <= kMostDifferentiated;
  cases.push_back(
      {.operation = "cross_entropy",
       .shape = fmt::format("({}, {} of {}){}", c.rows, c.vocabulary, c.padded, with_gradient ? " with gradient" : ""),
       .run = run_cross_entropy(c, with_gradient),
       .inputs = [c] { return inputs_of(c); },
       .expected = naive_cross_entropy(c, with_gradient),
       .backward = is_differentiated ? seeded_backward(run_cross_entropy(c, true)) : Runner(),
       .output = "losses"});
}

void add_parts(OpCases& cases, const PartsCase& c, bool with_gradient, const char* operation) {
  const bool is_differentiated = !with_gradient && c.rows * c.whole().padded <= kMostDifferentiated;
  cases.push_back(
      {.operation = operation,
       .shape = fmt::format("({}, {} in {} x {}){}", c.rows, c.vocabulary, c.ranks, c.cols,
                            with_gradient ? " with gradient" : ""),
       .run = run_parts(c, with_gradient),
       .inputs = [c] { return inputs_of(c.whole()); },
       .expected = [c, with_gradient](
                       const Named& in) { return run_in_double(run_cross_entropy(c.whole(), with_gradient), in); },
       .backward = is_differentiated ? seeded_backward(run_parts(c, true)) : Runner(),
       .output = "losses"});
}

}  // namespace

Runner run_cross_entropy(const Case& c, bool with_gradient) {
  return [c, with_gradient](Stream& stream, DType dtype, const Named& in) {
    const Buffer logits(dtype, c.rows, c.padded, c.gap, in.at("logits"));
    const Buffer targets = vector_of(DType::i32, in.at("targets"));
    const Buffer weights = vector_of(main_dtype(dtype), in.at("weights"));
    const Buffer losses(main_dtype(dtype), 1, c.rows);
    const Placed<double> scale(kGradientScale);
    cross_entropy(stream, {.logits = logits.tensor(),
                           .targets = targets.vector(),
                           .weights = weights.vector(),
                           .losses = losses.vector(),
                           .vocabulary = c.vocabulary,
                           .with_gradient = with_gradient,
                           .gradient_scale = scale.data()});
    return Named{{"losses", losses.values()}, {"logits", logits.values()}};
  };
}

Reference naive_cross_entropy(const Case& c, bool with_gradient) {
  return [c, with_gradient](const Named& in) {
    Named out{{"logits", in.at("logits")}};
    for (int64_t r = 0; r < c.rows; ++r) {
      double* logits = out["logits"].data() + r * c.padded;
      const double weight = in.at("weights")[static_cast<size_t>(r)];
      const auto target = static_cast<int64_t>(in.at("targets")[static_cast<size_t>(r)]);
      const double maximum = *std::max_element(logits, logits + c.vocabulary);
      double sum = 0.0;
      for (int64_t i = 0; i < c.vocabulary; ++i) sum += std::exp(logits[i] - maximum);
      out["losses"].push_back(weight == 0.0 ? 0.0 : weight * (maximum + std::log(sum) - logits[target]));
      if (!with_gradient) continue;
      for (int64_t i = 0; i < c.padded; ++i) {
        const double probability = i < c.vocabulary ? std::exp(logits[i] - maximum) / sum : 0.0;
        logits[i] = weight * kGradientScale * (probability - (i == target ? 1.0 : 0.0));
      }
    }
    return out;
  };
}

Named inputs_of(const Case& c) {
  Named in{{"logits", random_values(c.rows * c.padded, 1, 3.0)}};
  for (int64_t r = 0; r < c.rows; ++r) {
    const bool ignored = r % 3 == 1;
    in["weights"].push_back(ignored ? 0.0 : 0.5 + static_cast<double>(r % 2));
    in["targets"].push_back(ignored ? -1.0 : philox(5, {static_cast<uint32_t>(r), 0, 0, 0})[0] % c.vocabulary);
  }
  return in;
}

Runner run_parts(const PartsCase& c, bool with_gradient) {
  return [c, with_gradient](Stream& stream, DType dtype, const Named& in) {
    const DType main = main_dtype(dtype);
    const Buffer logits(dtype, c.rows, c.whole().padded, c.gap, in.at("logits"));
    const Buffer targets = vector_of(DType::i32, in.at("targets"));
    const Buffer weights = vector_of(main, in.at("weights"));
    const Buffer statistics(main, 3 * c.ranks, c.rows, 1);
    const Placed<double> scale(kGradientScale);
    const auto part_of = [&](int64_t rank) {
      return c.ranks == 1 ? logits.tensor() : logits.tensor().slice_cols(rank * c.cols, (rank + 1) * c.cols);
    };
    for (int64_t rank = 0; rank < c.ranks; ++rank) {
      cross_entropy_part(stream, {.logits = part_of(rank),
                                  .targets = targets.vector(),
                                  .statistics = c.ranks == 1 ? statistics.tensor()
                                                             : statistics.tensor().slice_rows(3 * rank, 3 * rank + 3),
                                  .vocabulary = c.vocabulary,
                                  .first_column = rank * c.cols});
    }
    Named out;
    for (int64_t rank = 0; rank < c.ranks; ++rank) {
      const Buffer losses(main, 1, c.rows);
      cross_entropy_of_parts(stream, {.logits = part_of(rank),
                                      .targets = targets.vector(),
                                      .weights = weights.vector(),
                                      .losses = losses.vector(),
                                      .statistics = statistics.tensor(),
                                      .vocabulary = c.vocabulary,
                                      .first_column = rank * c.cols,
                                      .with_gradient = with_gradient,
                                      .gradient_scale = scale.data()});
      if (rank == 0) out["losses"] = losses.values();
      MEGALITH_CHECK(is_same(losses.values(), out["losses"]), "rank {} has other losses than the first", rank);
    }
    out["logits"] = logits.values();
    out["statistics"] = statistics.values();
    return out;
  };
}

OpCases cross_entropy_cases(Size size) {
  OpCases cases;
  const bool is_small = size == Size::small;
  for (const Case& c : is_small ? kSmall : kLarge) {
    add_case(cases, c, true);
    if (is_small) add_case(cases, c, false);
  }
  for (const PartsCase& c : is_small ? kSmallParts : kLargeParts) {
    add_parts(cases, c, true, "cross_entropy_of_parts");
    add_parts(cases, c, false, "cross_entropy_part");
  }
  return cases;
}

}  // namespace megalith::ops::testing
