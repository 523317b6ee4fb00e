#include "ops/cases/dropout.h"

#include "ops/dropout.h"

namespace megalith::ops::testing {

namespace {

using Case = DropoutCase;

const DropoutKey kKey{.seed = 7, .site = 3, .step = 11};

const std::vector<Case> kSmall = {{1, 1, 1, 0.5, false},
                                  {2, 3, 7, 0.1, true, 2},
                                  {2, 3, 7, 0.0, true, 2},
                                  {1, 5, 64, 0.0, false},
                                  {2, 3, 37, 0.4, false},
                                  {3, 7, 261, 0.3, true},
                                  {4, 33, 517, 0.1, true, 1},
                                  {2, 40, 1000, 0.9, false, 3},
                                  {1, 70, 300, 0.0, true},
                                  {2, 65, 2048, 0.1, true},
                                  {1, 40, 768, 0.2, true, 8},
                                  {3, 7, 261, 0.3, true, 1, true},
                                  {3, 9, 64, 0.2, true, 0, true, 7, 13},
                                  {2, 5, 1000, 0.5, false, 3, false, 9, 1}};
const std::vector<Case> kLarge = {{1, 2048, 768, 0.1, true}, {1, 2048, 768, 0.0, true}};

enum class Where { separate, over_x, over_residual };

std::string describe(const Case& c, Where where) {
  constexpr const char* kNames[] = {"", " over x", " over the residual"};
  return fmt::format("({} * {}, {}) p {}{}{}", c.batch, c.length, c.cols, c.probability, c.residual ? " residual" : "",
                     kNames[static_cast<int>(where)]);
}

Runner run_dropout_at(const Case& c, Where where) {
  return [c, where](Stream& stream, DType dtype, const Named& in) {
    const int64_t rows = c.rows();
    const Buffer x(dtype, rows, c.cols, c.gap, in.at("x"));
    const Placed<uint64_t> step(kKey.step);
    DropoutAdd args{.x = x.tensor(),
                    .y = {},
                    .dropout = {.probability = c.probability,
                                .seed = kKey.seed,
                                .site = kKey.site,
                                .step = step.data(),
                                .length = c.length,
                                .first_row = c.first_row}};
    std::map<std::string, Buffer> held;  // what only some cases have
    if (c.probability > 0.0) {
      args.dropout.sample_ids = held.emplace("ids", vector_of(DType::i64, in.at("ids"))).first->second.vector();
      if (c.placed) {
        args.dropout.first_positions =
            held.emplace("positions", vector_of(DType::i32, in.at("first_positions"))).first->second.vector();
      }
    }
    if (c.residual) {
      args.residual =
          held.emplace("residual", Buffer(dtype, rows, c.cols, c.gap, in.at("residual"))).first->second.tensor();
    }
    const Buffer y = where == Where::over_x          ? x
                     : where == Where::over_residual ? held.at("residual")
                                                     : Buffer(dtype, rows, c.cols, c.gap);
    args.y = y.tensor();
    dropout_add(stream, args);
    return Named{{"y", y.values()}};
  };
}

Reference naive_dropout(const Case& c) {
  return [c](const Named& in) {
    Values y;
    for (int64_t row = 0; row < c.rows(); ++row) {
      const auto sample = static_cast<size_t>((c.first_row + row) / c.length);
      const auto id = static_cast<uint64_t>(in.at("ids")[sample]);
      const auto first = static_cast<int64_t>(c.placed ? in.at("first_positions")[sample] : 0.0);
      const auto position = static_cast<uint32_t>(first + (c.first_row + row) % c.length);
      for (int64_t i = 0; i < c.cols; ++i) {
        const auto words = philox(kKey.of_sample(id), {static_cast<uint32_t>(i / 4), position, 0, 0});
        const bool kept = words[static_cast<size_t>(i % 4)] >= dropout_threshold(c.probability);
        const auto at = static_cast<size_t>(row * c.cols + i);
        y.push_back((kept ? in.at("x")[at] / (1.0 - c.probability) : 0.0) + (c.residual ? in.at("residual")[at] : 0.0));
      }
    }
    return Named{{"y", y}};
  };
}

// A dropout's gradient is the same dropout.
Runner run_backward(const Case& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    Named swapped = in;
    swapped["x"] = in.at("dy");
    return Named{{"dx", run_dropout(c)(stream, dtype, swapped).at("y")}};
  };
}

}  // namespace

Runner run_dropout(const Case& c) {
  return run_dropout_at(c, Where::separate);
}

Named inputs_of(const Case& c) {
  const int64_t count = c.rows() * c.cols;
  Named in{{"x", random_values(count, 1)}, {"residual", random_values(count, 2)}};
  for (int64_t i = 0; i < c.batch; ++i) {
    in["ids"].push_back(static_cast<double>(1000 + 13 * i));
    in["first_positions"].push_back(static_cast<double>(100 * (i + 1) + i));
  }
  return in;
}

OpCases dropout_cases(Size size) {
  OpCases cases;
  for (const Case& c : size == Size::small ? kSmall : kLarge) {
    for (const Where where : {Where::separate, Where::over_x, Where::over_residual}) {
      if (where == Where::over_residual && !c.residual) continue;
      if (size == Size::large && where != Where::over_residual) continue;
      const bool is_differentiated = where == Where::separate && !c.residual && c.rows() * c.cols <= 1000;
      cases.push_back({.operation = "dropout_add",
                       .shape = describe(c, where),
                       .run = run_dropout_at(c, where),
                       .inputs = [c] { return inputs_of(c); },
                       .expected = naive_dropout(c),
                       .backward = is_differentiated ? run_backward(c) : Runner(),
                       .output = "y"});
    }
  }
  return cases;
}

}  // namespace megalith::ops::testing
