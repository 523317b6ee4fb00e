#include "ops/rope.h"

#include <cmath>

#include "ops/cases/op_case.h"

namespace megalith::ops::testing {

namespace {

struct Case {
  int64_t batch, length, heads, dim, offset, gap;
  bool given = false;  // positions are given, not counted
};
const std::vector<Case> kSmall = {{1, 1, 1, 2, 0, 0},     {2, 5, 3, 6, 0, 4},       {1, 1, 2, 64, 9, 0},
                                  {3, 33, 4, 64, 2, 10},  {1, 300, 2, 130, 0, 3},   {2, 100, 6, 128, 0, 0},
                                  {1, 64, 12, 64, 3, 64}, {2, 20, 3, 8, 0, 2, true}};
const std::vector<Case> kLarge = {{1, 2048, 12, 64, 0, 0}};

std::string describe(const Case& c) {
  return fmt::format("{} x {} rows, {} heads of {}, from {}{}", c.batch, c.length, c.heads, c.dim, c.offset,
                     c.given ? ", given" : "");
}

float angle_of(const Case& c, int64_t position, int64_t i) {
  return static_cast<float>(static_cast<double>(position) *
                            std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(c.dim)));
}

int64_t position_of(const Case& c, int64_t row) {
  return c.given ? row * row % c.length : c.offset + row % c.length;
}

Runner run_rope(const Case& c, bool inverse) {
  return [c, inverse](Stream& stream, DType dtype, const Named& in) {
    const int64_t positions = c.offset + c.length;
    Values cosines, sines, given;
    for (int64_t p = 0; p < positions; ++p) {
      for (int64_t i = 0; i < c.dim / 2; ++i) {
        cosines.push_back(std::cos(angle_of(c, p, i)));
        sines.push_back(std::sin(angle_of(c, p, i)));
      }
    }
    const Buffer cos_table(DType::f32, positions, c.dim / 2, 0, cosines);
    const Buffer sin_table(DType::f32, positions, c.dim / 2, 0, sines);
    const Buffer x(dtype, c.batch * c.length, c.heads * c.dim, c.gap, in.at(inverse ? "dy" : "x"));
    for (int64_t row = 0; c.given && row < c.batch * c.length; ++row) {
      given.push_back(static_cast<double>(position_of(c, row)));
    }
    const Buffer given_positions = vector_of(DType::i32, given);
    rope(stream, {.x = x.tensor(),
                  .head_dim = c.dim,
                  .length = c.length,
                  .position_offset = c.offset,
                  .positions = c.given ? given_positions.vector() : Tensor(),
                  .angles_cos = cos_table.tensor(),
                  .angles_sin = sin_table.tensor(),
                  .inverse = inverse});
    return Named{{inverse ? "dx" : "y", x.values()}};
  };
}

Reference naive_rope(const Case& c) {
  return [c](const Named& in) {
    Values y = in.at("x");
    for (int64_t row = 0; row < c.batch * c.length; ++row) {
      for (int64_t head = 0; head < c.heads; ++head) {
        const int64_t base = (row * c.heads + head) * c.dim;
        for (int64_t i = 0; i < c.dim / 2; ++i) {
          const float angle = angle_of(c, position_of(c, row), i);
          const double cosine = std::cos(angle);
          const double sine = std::sin(angle);
          const auto low = static_cast<size_t>(base + i);
          const auto high = static_cast<size_t>(base + i + c.dim / 2);
          y[low] = in.at("x")[low] * cosine - in.at("x")[high] * sine;
          y[high] = in.at("x")[high] * cosine + in.at("x")[low] * sine;
        }
      }
    }
    return Named{{"y", y}};
  };
}

}  // namespace

OpCases rope_cases(Size size) {
  OpCases cases;
  for (const Case& c : size == Size::small ? kSmall : kLarge) {
    cases.push_back({.operation = "rope",
                     .shape = describe(c),
                     .run = run_rope(c, false),
                     .inputs =
                         [c] {
                           return Named{{"x", random_values(c.batch * c.length * c.heads * c.dim, 1)}};
                         },
                     .expected = naive_rope(c),
                     .backward = run_rope(c, true),
                     .output = "y"});
  }
  return cases;
}

}  // namespace megalith::ops::testing
