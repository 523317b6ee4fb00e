#include "ops/optimizer.h"

#include <cmath>

#include "ops/cases/optimizer.h"
#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

TEST(GradientNorm, NamesTheFirstParameterThatIsNotFinite) {
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY), -static_cast<double>(INFINITY)}) {
    Named in = gradients_of(kUpdateTile + 3);
    in["g1"][2] = bad;
    in["g2"][50] = bad;
    for (const Named& out : run_everywhere(run_gradient_norm({.max_norm = 1.0}), DType::f32, in)) {
      EXPECT_EQ(out.at("first_non_finite")[0], 1.0);
      EXPECT_EQ(out.at("skip")[0], 1.0);
      EXPECT_FALSE(std::isfinite(out.at("norm")[0]));
    }
  }
}

TEST(GradientNorm, LargeGradientsDoNotOverflow) {
  Named in = gradients_of(10);
  in["g0"][3] = 1e30;
  for (const Named& out : run_everywhere(run_gradient_norm({.max_norm = 1.0}), DType::f32, in)) {
    EXPECT_NEAR(out.at("norm")[0], 1e30, 1e23);
    EXPECT_EQ(out.at("skip")[0], 0.0);
  }
}

TEST(ClipGradients, ASkipStaysWhereItShould) {
  const Named in = gradients_of(10);
  for (const Named& out :
       run_everywhere(run_gradient_norm({.max_norm = 1.0, .skip_stays = true, .skip_before = 1}), DType::f32, in)) {
    EXPECT_EQ(out.at("skip")[0], 1.0);
  }
  for (const Named& out : run_everywhere(run_gradient_norm({.max_norm = 1.0, .skip_before = 1}), DType::f32, in)) {
    EXPECT_EQ(out.at("skip")[0], 0.0);
  }
}

TEST(AdamW, Bf16WeightsKeepAnFp32Master) {
  const Named in = adam_inputs(100);
  for (const Named& out : run_everywhere(run_adamw(some_scalars()), DType::bf16, in)) {
    EXPECT_LT(relative_error(out.at("master"), naive_adamw(in).at("w")), 1e-6);
    for (size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(out.at("w")[i], static_cast<float>(bfloat16(static_cast<float>(out.at("master")[i]))));
    }
  }
}

TEST(AdamW, SkipLeavesEverythingUntouched) {
  const Named in = adam_inputs(1000);
  for (const Named& out : run_everywhere(run_adamw(some_scalars(1)), DType::f32, in)) {
    for (const char* name : {"w", "m"}) EXPECT_EQ(out.at(name), in.at(name)) << name;
    EXPECT_EQ(out.at("master"), in.at("w"));
  }
}

TEST(AdamW, ZeroGradientAndMomentsOnlyDecay) {
  Named in = adam_inputs(9);
  in["g"] = in["m"] = in["v"] = Values(9);
  for (const Named& out : run_everywhere(run_adamw(some_scalars()), DType::f32, in)) {
    for (size_t i = 0; i < 9; ++i) {
      EXPECT_NEAR(out.at("w")[i], in.at("w")[i] * (1.0 - 0.01 * static_cast<double>(kDecay)), 1e-6);
      EXPECT_EQ(out.at("w_plain")[i], in.at("w")[i]);
    }
  }
}

TEST(UpdateTiles, CutEveryParameterOnItsOwn) {
  const Named in = adam_inputs(2 * kUpdateTile + 5);
  const Parameter large(DType::f32, in, 0), small(DType::f32, adam_inputs(3), 0);
  const std::vector<UpdateTile> tiles =
      make_update_tiles(std::vector<UpdateTensors>{large.tensors(kDecay), small.tensors(0.0F)});
  ASSERT_EQ(tiles.size(), 4U);
  EXPECT_EQ(tiles[2].elements, 5);
  EXPECT_EQ(tiles[2].parameter, 0);
  EXPECT_EQ(tiles[3].elements, 3);
  EXPECT_EQ(tiles[3].parameter, 1);
  EXPECT_EQ(tiles[1].gradient, large.gradient.tensor().as<float>() + kUpdateTile);
}

TEST(Optimizer, RefusesWhatBreaksTheContract) {
  ThreadPool pool(1);
  Stream stream(pool);
  const Buffer narrow(DType::bf16, 1, 8), low(DType::i16, 1, 8), main(DType::f32, 1, 8), shorter(DType::f32, 1, 7);
  const auto with = [&](const Buffer& remainder, const Buffer& gradient) {
    return [&narrow, &main, &remainder, &gradient] {
      make_update_tiles(std::vector<UpdateTensors>{
          {narrow.vector(), remainder.vector(), gradient.vector(), main.vector(), main.vector()}});
    };
  };
  EXPECT_NO_THROW(with(low, main)());
  expect_refused(with(narrow, main));
  expect_refused(with(low, shorter));
  UpdateScalars scalars;
  const Buffer partials(DType::f64, 1, 1), two(DType::f64, 1, 2);
  const UpdateTiles no_tiles{.tiles = nullptr, .count = 1};
  expect_refused([&] { adamw(stream, {}); });
  expect_refused([&] { adamw(stream, {.tiles = no_tiles, .scalars = &scalars}); });
  expect_refused([&] { clip_gradients(stream, {}); });
  expect_refused([&] { set_update_scalars(stream, {}); });
  expect_refused(
      [&] { gradient_norm(stream, {.tiles = no_tiles, .partials = partials.vector(), .scalars = &scalars}); });
  expect_refused([&] { gradient_norm(stream, {.tiles = {}, .partials = main.vector(), .scalars = &scalars}); });
  const std::vector<UpdateTile> tiles = make_update_tiles(std::vector<UpdateTensors>{
      {.weights = main.vector(), .gradient = main.vector(), .exp_avg = main.vector(), .exp_avg_sq = main.vector()}});
  const UpdateTiles one{.tiles = tiles.data(), .count = 1, .elements = 8};
  EXPECT_NO_THROW(gradient_norm(stream, {.tiles = one, .partials = partials.vector(), .scalars = &scalars}));
  expect_refused([&] { gradient_norm(stream, {.tiles = one, .partials = two.vector(), .scalars = &scalars}); });
  expect_refused([&] { gradient_norm(stream, {.tiles = one, .partials = shorter.vector(), .scalars = &scalars}); });
  expect_refused([&] { gradient_norm(stream, {.tiles = one, .partials = partials.vector()}); });
}

}  // namespace
}  // namespace megalith::ops::testing
